"""A table rebuilt from its events is the table that it was, except for what had to be repaired."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder
from pyarrow.fs import LocalFileSystem
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from spark_app.columns.table_columns import SchemaConflict
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.topic_checks import PositionLost
from spark_app.positions.postgres import PostgresLog
from spark_app.reports import ProgressWriter
from spark_app.run.outcome import Outcome
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.table_task import run_for_each_table
from spark_app.sources.event import OffsetRange
from spark_app.table.quarantine import read_quarantine
from spark_app.table.rebuild import NotRebuilt, rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire import decode
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SentEvent, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tests.spark_app.wire_forms import bare
from tributary.api.timeline import read_retyped_columns
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import RebuildTable

BATCHES = ((0, 13), (13, 18))


def test_a_rebuilt_table_is_the_same_and_continues_and_keeps_its_history(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = _history()
    rows: list[tuple[object, ...]] = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    rows.insert(17, (TOPIC, 0, 17, None, rows[0][4], bytearray(b"garbage"), None, None))
    rows = [(*row[:2], offset, *row[3:]) for offset, row in enumerate(rows)]
    table = _table(spark, tmp_path, rows, TablePolicy())
    instants = []
    with monkeypatch.context() as patched:
        _reject(patched, "poison")
        for first, until in BATCHES:
            table.apply((OffsetRange(0, first, until),))
            instants.append(_last_instant(table))
    assert _offsets_in_quarantine(spark, table) == {12, 17}

    table.parts.reader.source = MemorySource(spark, rows[:18])
    committed = rebuild_table(table)

    expected = {key: (row["name"], row["body"]) for key, row in shop.events[16].state.items()}
    assert _rows(table) == expected
    assert committed.positions == {0: 18}
    assert _rows_without_spark(table) == expected
    files: Any = LocalFileSystem()
    assert read_retyped_columns(files, table.hudi.path, instants[0]) == frozenset()
    assert _offsets_in_quarantine(spark, table) == {17}
    for instant, (_, until) in zip(instants[:-1], BATCHES, strict=False):
        state = {key: row["name"] for key, row in shop.events[until - 1].state.items()} | {4: "first"}
        assert {key: name for key, (name, _) in _rows(table, instant).items()} == state
        assert {key: name for key, (name, _) in _rows_without_spark(table, instant).items()} == state

    table.parts.reader.source = MemorySource(spark, rows)
    table.apply((OffsetRange(0, 18, len(rows)),))
    table.hudi.compact()
    assert _rows(table) == {key: (row["name"], row["body"]) for key, row in shop.rows.items()}
    assert _rows_without_spark(table) == _rows(table)
    table.forget()
    assert table.ledger.positions == {0: len(rows)}


def test_a_table_of_events_without_schemas_is_rebuilt_with_the_columns_of_the_lake_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(3):
        shop.insert(key, "first", None)
    shop.update(1, "second", None, body_is_unchanged=False)
    shop.commit()
    sent = [replace(e, key=e.key and bare(e.key), value=e.value and bare(e.value)) for e in shop.events]
    rows = [event_row(event, offset) for offset, event in enumerate(sent)]
    policy = TablePolicy.model_validate({"key": ("id",), "columns": shop.columns})
    table = _table(spark, tmp_path, rows, policy)
    table.apply((OffsetRange(0, 0, len(rows)),))
    assert rebuild_table(table).events == len(rows)
    assert _names(table) == {0: "first", 1: "second", 2: "first"}


def test_a_table_that_a_changed_type_has_blocked_continues_after_its_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key, name in enumerate(["7", "8", "9", "text", "more"]):
        shop.insert(key, name, None)
    shop.update(0, "now text", None, body_is_unchanged=False)
    shop.commit()
    numbers = [_as_numbers(event) for event in shop.events[:3]]
    rows = [event_row(event, offset) for offset, event in enumerate([*numbers, *shop.events[3:]])]
    table = _table(spark, tmp_path, rows, TablePolicy(storage="copy_on_write"))
    table.apply((OffsetRange(0, 0, 3),))
    before = _last_instant(table)
    with pytest.raises(SchemaConflict) as conflict:
        table.apply((OffsetRange(0, 3, 5),))
    outcomes = OutcomeFiles(spark)
    assert RebuildTable() in conflict.value.remedies
    outcomes.write(table.quarantine_path, Outcome.of("blocked", conflict.value, None, table.name))
    table.parts.reader.source = MemorySource(spark, rows[:5])

    assert run_for_each_table(
        table.source, lambda _: table, rebuild_table, ProgressWriter(io.StringIO()), outcomes
    )

    assert outcomes.read(table.quarantine_path) is None
    assert table.hudi.read().schema["name"].dataType == StringType()
    assert _names(table) == {0: "7", 1: "8", 2: "9", 3: "text", 4: "more"}
    assert {row["id"]: row["name"] for row in _as_of(table, before)} == {0: 7, 1: 8, 2: 9}
    files: Any = LocalFileSystem()
    assert read_retyped_columns(files, table.hudi.path, before) == {"name"}
    assert read_retyped_columns(files, table.hudi.path, _last_instant(table)) == frozenset()
    table.parts.reader.source = MemorySource(spark, rows)
    table.apply((OffsetRange(0, 5, 6),))
    assert _names(table) == {key: row["name"] for key, row in shop.rows.items()}
    without_spark = {key: name for key, (name, _) in _rows_without_spark(table).items()}
    assert without_spark == _names(table)


def test_a_table_whose_rows_are_all_gone_is_empty_after_its_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "first", None)
    shop.truncate()
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, rows, TablePolicy())
    table.apply((OffsetRange(0, 0, 1),))

    rebuild_table(table)

    table.forget()
    assert (table.ledger.positions, _rows(table), _rows_without_spark(table)) == ({0: 2}, {}, {})


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_table_rebuilt_since_the_last_snapshot_has_no_row_whose_delete_was_missed(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    shop = SourceTable()
    shop.snapshot()
    shop.begin()
    for key in range(6):
        shop.insert(key, "first", f"body of {key}")
    shop.commit()
    sent = len(shop.events)
    shop.begin()
    shop.delete(1)
    shop.update(2, "unseen", None, body_is_unchanged=True)
    shop.move(3, 30)
    shop.commit()
    unseen = len(shop.events) - sent
    shop.snapshot()
    shop.begin()
    shop.update(30, "later", None, body_is_unchanged=True)
    shop.delete(4)
    shop.commit()
    events = [*shop.events[:sent], *shop.events[sent + unseen :]]
    offsets = [0] * partitions
    rows = []
    for event in events:
        partition = zlib.crc32(event.key or b"") % partitions
        rows.append(event_row(event, offsets[partition], partition))
        offsets[partition] += 1
    table = _table(spark, tmp_path, rows, TablePolicy())
    table.apply(tuple(OffsetRange(partition, 0, end) for partition, end in enumerate(offsets)))
    expected = {key: (row["name"], row["body"]) for key, row in shop.rows.items()}
    assert _rows(table).keys() - expected.keys() == {1, 3}

    rebuild_table(table, since_snapshot=True)

    assert _rows(table) == _rows_without_spark(table) == expected


def test_a_table_with_no_later_snapshot_is_not_rebuilt_since_one(spark: SparkSession, tmp_path: Path) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "first", None)
    shop.commit()
    table = _table(
        spark, tmp_path, [event_row(event, n) for n, event in enumerate(shop.events)], TablePolicy()
    )
    table.apply((OffsetRange(0, 0, 1),))
    with pytest.raises(NotRebuilt, match="no snapshot of the table but the one that it began with"):
        rebuild_table(table, since_snapshot=True)
    assert _names(table) == {1: "first"}


def test_a_table_is_not_rebuilt_since_a_snapshot_that_is_not_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(3):
        shop.insert(key, "first", None)
    shop.commit()
    shop.snapshot()
    rows = [event_row(event, n) for n, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, rows[:5], TablePolicy())
    table.apply((OffsetRange(0, 0, 5),))
    instant = _last_instant(table)
    with pytest.raises(NotRebuilt, match="is not over yet"):
        rebuild_table(table, since_snapshot=True)
    assert _last_instant(table) == instant

    table.parts.reader.source = MemorySource(spark, rows)
    rebuild_table(table, since_snapshot=True)
    assert _names(table) == dict.fromkeys(range(3), "first")


def test_a_snapshot_of_one_row_is_over_although_debezium_marks_no_last_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    shop.insert(1, "first", None)
    shop.insert(2, "deleted unseen", None)
    shop.commit()
    del shop.rows[2]
    shop.snapshot()
    rows = [event_row(event, n) for n, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, rows, TablePolicy())
    table.apply((OffsetRange(0, 0, 3),))
    rebuild_table(table, since_snapshot=True)
    assert _names(table) == {1: "first"}


def test_a_rebuild_that_would_lose_something_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(3):
        shop.insert(key, "first", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, rows, TablePolicy())
    table.apply((OffsetRange(0, 0, 3),))
    instant = _last_instant(table)

    table.parts.reader.source = MemorySource(spark, rows[:2])
    with pytest.raises(PositionLost, match=r"found events up to 0:2, expected events up to 0:3"):
        rebuild_table(table, patience_seconds=0)
    table.parts.reader.source = MemorySource(spark, rows, beginning=1)
    with pytest.raises(PositionLost, match="first events"):
        rebuild_table(table)
    table.parts.reader.source = MemorySource(spark, [*rows, rows[0]])
    with pytest.raises(NotRebuilt, match="4 events at 3 offsets"):
        rebuild_table(table)
    assert _last_instant(table) == instant


def _history() -> SourceTable:
    """Eighteen events until the rebuild, one of them the garbage at offset 17, and some after it."""
    shop = SourceTable()
    shop.begin()
    for key in range(6):
        shop.insert(key, "first", f"body of {key}")
    shop.commit()
    shop.begin()
    shop.update(1, "second", None, body_is_unchanged=True)
    shop.delete(2)
    shop.move(3, 30)
    shop.update(4, "poison", None, body_is_unchanged=True)
    shop.commit()
    shop.begin()
    shop.insert(2, "again", None)
    shop.update(30, "moved", None, body_is_unchanged=True)
    shop.delete(5)
    shop.commit()
    shop.begin()
    shop.update(1, "after", None, body_is_unchanged=True)
    shop.delete(0)
    shop.insert(7, "after", "body")
    shop.commit()
    return shop


def _table(
    spark: SparkSession, folder: Path, rows: Sequence[tuple[object, ...]], policy: TablePolicy
) -> TableIngest:
    return TableIngest(
        name="source.public.things",
        topic=TOPIC,
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(folder / "silver"), "things", policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(PostgresLog()),
    )


def _reject(patched: pytest.MonkeyPatch, name: str) -> None:
    """Reject a value as if it could not be decoded yet."""
    why_bad = decode._why_bad
    is_rejected = F.col("row.name") == name
    patched.setattr(decode, "_why_bad", lambda: F.when(is_rejected, "mismatch").otherwise(why_bad()))
    patched.setattr(decode, "_projections", decode._projections.__wrapped__)


def _as_numbers(event: SentEvent) -> SentEvent:
    """Return the event as it would be if the column `name` were an integer."""
    assert event.value is not None
    value = json.loads(event.value)
    for row in value["schema"]["fields"][:2]:
        row["fields"][1]["type"] = "int32"
    value["payload"]["after"]["name"] = int(value["payload"]["after"]["name"])
    return replace(event, value=json.dumps(value, separators=(",", ":")).encode())


def _last_instant(table: TableIngest) -> str:
    instant = table.hudi.timeline().last_instant
    assert instant is not None
    return instant


def _as_of(table: TableIngest, instant: str) -> list[Row]:
    return (
        table.hudi.spark.read.format("hudi").option("as.of.instant", instant).load(table.hudi.path).collect()
    )


def _rows(table: TableIngest, instant: str | None = None) -> dict[int, tuple[str, str | None]]:
    rows = table.hudi.read().collect() if instant is None else _as_of(table, instant)
    return {row["id"]: (row["name"], row["body"]) for row in rows}


def _names(table: TableIngest) -> dict[int, str]:
    return {key: name for key, (name, _) in _rows(table).items()}


def _rows_without_spark(table: TableIngest, instant: str | None = None) -> dict[int, tuple[str, str | None]]:
    options = HudiReadOptions()
    hudi = HudiTableBuilder.from_base_uri(table.hudi.path).build()
    batches = hudi.read(options if instant is None else options.with_as_of_timestamp(instant))
    rows = pa.Table.from_batches(batches).to_pylist() if batches else []
    return {row["id"]: (row["name"], row["body"]) for row in rows}


def _offsets_in_quarantine(spark: SparkSession, table: TableIngest) -> set[int]:
    found = read_quarantine(spark, table.quarantine_path, 0)
    return set() if found is None else {row["offset"] for row in found[0].collect()}
