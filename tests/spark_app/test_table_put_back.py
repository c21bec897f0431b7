"""If somebody restores an earlier state of a table, or deletes it, a running app soon repairs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.sources.event import OffsetRange
from spark_app.table.known_commits import AnotherWriter
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tributary.contract.lake import TablePolicy


@pytest.mark.parametrize("is_removed", [False, True])
def test_commits_that_a_restore_has_undone_are_committed_again(
    spark: SparkSession, tmp_path: Path, is_removed: bool
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(1, 5):
        shop.insert(key, f"name {key}", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    silver, backup = tmp_path / "silver", tmp_path / "backup"
    hudi = HudiTable(spark, str(silver), "things", TablePolicy(buckets=1))
    table = table_of_things(hudi, rows, tmp_path)
    table.apply((OffsetRange(0, 0, 1),))
    shutil.copytree(silver, backup)
    table.apply((OffsetRange(0, 1, 2),))
    table.apply((OffsetRange(0, 2, 3),))

    shutil.rmtree(silver)
    if not is_removed:
        backup.rename(silver)
    with pytest.raises(AnotherWriter, match="has lost its"):
        table.apply((OffsetRange(0, 3, 4),))
    table.forget()

    assert table.ledger.positions == ({} if is_removed else {0: 1})
    table.apply((OffsetRange(0, 0, 4),))
    assert sorted(row["id"] for row in hudi.read().collect()) == [1, 2, 3, 4]
    with pytest.raises(AnotherWriter, match="has undone a commit"):
        table.parts.commits.find(table.ledger.next_commit())
