"""A quarantined event that has become readable is applied at its place, and later changes stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import Replayed
from spark_app.sources.event import OffsetRange
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
    table = TableIngest(
        name="source.public.things",
        topic=TOPIC,
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy()),
        quarantine_path=str(tmp_path / "quarantine"),
        form=TopicForm(PostgresLog()),
    )

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


def present(table: TableIngest) -> dict[int, tuple[str, str]]:
    return {row["id"]: (row["name"], row["body"]) for row in table.hudi.read().collect()}
