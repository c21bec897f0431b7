"""A table of which an earlier state is put back, or nothing, under an app that runs, is soon what it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.table.known_commits import AnotherWriter
from spark_app.table.table_ingest import TableIngest
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy


@pytest.mark.parametrize(("is_removed", "error"), [(False, AnotherWriter), (True, Py4JJavaError)])
def test_what_was_committed_since_is_committed_again(
    spark: SparkSession, tmp_path: Path, is_removed: bool, error: type[Exception]
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(1, 5):
        shop.insert(key, f"name {key}", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    silver, backup = tmp_path / "silver", tmp_path / "backup"
    hudi = HudiTable(spark, str(silver), "things", TablePolicy(buckets=1))
    table = TableIngest(
        "things", TOPIC, MemorySource(spark, rows), hudi, str(tmp_path / "quarantine"), PostgresLog()
    )
    table.apply((OffsetRange(0, 0, 1),))
    shutil.copytree(silver, backup)
    table.apply((OffsetRange(0, 1, 2),))
    table.apply((OffsetRange(0, 2, 3),))

    shutil.rmtree(silver)
    if not is_removed:
        backup.rename(silver)
    with pytest.raises(error):
        table.apply((OffsetRange(0, 3, 4),))
    table.forget()

    assert table.ledger.positions == ({} if is_removed else {0: 1})
    table.apply((OffsetRange(0, 0, 4),))
    assert sorted(row["id"] for row in hudi.read().collect()) == [1, 2, 3, 4]
