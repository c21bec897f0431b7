"""A quarantined event that has become readable is applied at its place, and later changes stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import Replayed
from spark_app.sources.event import OffsetRange
from spark_app.table.quarantine import QUARANTINED, read_quarantine, write_quarantine
from spark_app.table.replay import replay_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire import decode
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy


def test_an_old_event_is_applied_below_what_came_later_and_only_the_unreadable_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in (1, 2, 3, 4):
        shop.insert(key, "first", "body")
    shop.update(1, "poison", "from the quarantine", body_is_unchanged=False)
    shop.update(2, "poison", "from the quarantine", body_is_unchanged=False)
    shop.delete(3)
    shop.insert(3, "poison", None)
    shop.commit()
    shop.begin()
    shop.update(2, "later", None, body_is_unchanged=True)
    shop.delete(3)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    rows.append((TOPIC, 0, len(rows), None, rows[0][4], bytearray(b"garbage"), None, None))
    table = _table(spark, tmp_path, rows)

    with monkeypatch.context() as patched:
        why_bad = decode._why_bad
        is_poison = F.col("row.name") == "poison"
        patched.setattr(decode, "_why_bad", lambda: F.when(is_poison, "mismatch").otherwise(why_bad()))
        patched.setattr(decode, "_projections", decode._projections.__wrapped__)
        table.apply((OffsetRange(0, 0, len(rows)),))

    assert present(table) == {1: ("first", "body"), 2: ("later", "body"), 4: ("first", "body")}
    assert replay_table(table) == Replayed("source.public.things", applied=3, left=1)
    assert present(table) == {key: (row["name"], row["body"]) for key, row in shop.rows.items()}
    assert replay_table(table) == Replayed("source.public.things", applied=0, left=1)
    assert table.ledger.positions == {0: len(rows)}


def test_each_replay_leaves_what_still_cannot_be_read_and_no_folder_at_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(0, "good", None)
    for key in (1, 2, 3):
        shop.insert(key, f"poison {key}", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, rows)
    why_bad = decode._why_bad

    def with_poison(*names: str) -> None:
        is_poison = F.col("row.name").isin(*names)
        monkeypatch.setattr(decode, "_why_bad", lambda: F.when(is_poison, "mismatch").otherwise(why_bad()))
        monkeypatch.setattr(decode, "_projections", decode._projections.__wrapped__)

    real_projections = decode._projections
    with_poison("poison 1", "poison 2", "poison 3")
    table.apply((OffsetRange(0, 0, len(rows)),))
    for left in (("poison 2", "poison 3"), ("poison 3",), ("",)):
        monkeypatch.setattr(decode, "_projections", real_projections)
        with_poison(*left)
        still = len([name for name in left if name])
        assert replay_table(table) == Replayed(table.name, applied=1, left=still)
    assert sorted(present(table)) == [0, 1, 2, 3]
    assert read_quarantine(spark, table.quarantine_path, table.ledger.epoch) is None
    assert replay_table(table) == Replayed(table.name, applied=0, left=0)


def test_events_that_were_set_aside_before_a_crash_are_left_to_the_next_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "first", None)
    shop.commit()
    garbage = (TOPIC, 0, 1, None, None, bytearray(b"garbage"), None, None)
    table = _table(spark, tmp_path, [event_row(shop.events[0], 0), garbage])
    table.apply((OffsetRange(0, 0, 1),))
    aside = spark.createDataFrame([(*garbage, "not_json", "", datetime.now(UTC))], QUARANTINED)
    write_quarantine(aside, table.quarantine_path, table.ledger.epoch, (OffsetRange(0, 1, 2),))

    assert replay_table(table) == Replayed(table.name, applied=0, left=1)


def _table(spark: SparkSession, folder: Path, rows: Sequence[tuple[Any, ...]]) -> TableIngest:
    return TableIngest(
        name="source.public.things",
        topic=TOPIC,
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(folder / "silver"), "things", TablePolicy()),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(PostgresLog()),
    )


def present(table: TableIngest) -> dict[int, tuple[str, str]]:
    return {row["id"]: (row["name"], row["body"]) for row in table.hudi.read().collect()}
