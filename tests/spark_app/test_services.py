"""Table services run while commits go on, and neither they nor a crash among them changes what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.lake import TablePolicy
from spark_app import table_ingest
from spark_app.event import OffsetRange
from spark_app.hudi import HudiTable
from spark_app.table_ingest import TableIngest
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource

COMMITS = 7


def test_rows_and_ledger_are_the_same_through_compactions_and_one_left_by_a_crash(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_ingest, "COMMITS_BETWEEN_SERVICES", 3)
    shop = SourceTable()
    shop.begin()
    for key in range(COMMITS):
        shop.insert(key, "first", None)
    for key in range(COMMITS):
        shop.update(key % 3, f"change {key}", None, body_is_unchanged=False)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table = TableIngest("things", TOPIC, MemorySource(spark, rows), hudi, str(tmp_path / "quarantine"))

    for number in range(COMMITS):
        table.apply((OffsetRange(0, 2 * number, 2 * number + 2),))
        table.maintain()
        assert table.ledger.positions == {0: 2 * number + 2}
        assert names(hudi) == {key: row["name"] for key, row in shop.events[2 * number + 1].state.items()}

    assert compactions(tmp_path, "commit") == COMMITS // 3
    hudi._run_compaction("schedule")
    assert compactions(tmp_path, "compaction.requested") == COMMITS // 3 + 1
    table.recover()
    assert compactions(tmp_path, "commit") == COMMITS // 3 + 1
    assert table.ledger.positions == {0: 2 * COMMITS}
    assert names(hudi) == {key: row["name"] for key, row in shop.rows.items()}


def names(table: HudiTable) -> dict[int, str]:
    return {row["id"]: row["name"] for row in table.read().collect()}


def compactions(folder: Path, state: str) -> int:
    return len(list((folder / "silver" / ".hoodie").glob(f"[0-9]*.{state}")))
