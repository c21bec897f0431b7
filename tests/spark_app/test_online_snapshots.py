"""After an online snapshot, a table equals its source, although changes came without events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.run.look_files import LookFiles
from spark_app.run.pause_files import PauseFiles
from spark_app.run.snapshot_files import SnapshotFiles
from spark_app.sources.event import OffsetRange
from spark_app.table.rebuild import rebuild_table
from spark_app.table.snapshot_end import end_snapshot, is_end_due
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.history import CHANGES, CHANGES_OF_NO_KEY, KEYS, TEMPORARY_KEY, Act
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy
from tributary.contract.online_snapshot import (
    RECORDS_FOLDER,
    Read,
    Reading,
    Record,
    Request,
    Requested,
    to_json,
)
from tributary.contract.pause import PAUSES_FOLDER, Pause
from tributary.contract.pause import to_json as pause_to_json
from tributary.contract.source_look import SourceLook, look_name
from tributary.contract.table_name import TableName

NAME = TableName("source", "public", "things")
REQUEST = Request("one", NAME, ("a test",), requested_us=1_800_000_000_000_000)
Deletes = Literal["hard", "soft"]
Storage = Literal["merge_on_read", "copy_on_write"]


@dataclass(frozen=True)
class Told:
    """A history in which an online snapshot repairs silent changes.

    began, ended  how many events there were before and after the snapshot
    """

    table: SourceTable
    began: int
    ended: int
    partition_of: dict[int | None, int]

    def rows(self) -> list[tuple[object, ...]]:
        ends = self.ends(0)
        rows = []
        for event in self.table.events:
            partition = self.partition_of[event.of_key]
            rows.append(event_row(event, ends.setdefault(partition, 0), partition))
            ends[partition] += 1
        return rows

    def ends(self, events: int) -> dict[int, int]:
        """Return the end of each partition after this many events."""
        ends: dict[int, int] = {}
        for event in self.table.events[:events]:
            partition = self.partition_of[event.of_key]
            ends[partition] = ends.get(partition, 0) + 1
        return ends

    @property
    def snapshot(self) -> Read:
        return Read(REQUEST, None, self.ends(self.began), self.ends(self.ended))


@st.composite
def told(draw: st.DrawFn) -> Told:
    """A table whose rows change and vanish without an event, and a snapshot during which others change.

    If large values have changed, no key does during the snapshot: its row could move past the reading, and
    PostgreSQL sends no large value that stays the same (docs/guarantees.md, "Not promised").
    """
    table = SourceTable()
    for key in draw(st.sets(st.sampled_from(KEYS), min_size=2)):
        table.rows[key] = {"id": key, "name": f"row {key}", "body": None}
    table.snapshot()
    _transactions(draw, table, draw(st.integers(0, 3)))
    column = draw(st.sampled_from(("name", "body")))
    meanwhile = CHANGES if column == "name" else CHANGES_OF_NO_KEY
    for key in sorted(table.rows):
        match draw(st.sampled_from(("stays", "stays", "vanishes", "changes"))):
            case "vanishes":
                table.deleted[key] = table.rows.pop(key)
            case "changes":
                table.rows[key] = {**table.rows[key], column: "silently"}
    for key in draw(st.sets(st.sampled_from(KEYS), max_size=1)) - table.rows.keys():
        table.rows[key] = {"id": key, "name": f"silent {key}", "body": None}
    began = len(table.events)
    last = 0
    while keys := [key for key in sorted(table.rows) if key > last][: draw(st.integers(1, 3))]:
        _transactions(draw, table, draw(st.integers(0, 1)), meanwhile)
        for key in keys:
            if key in table.rows:
                table.read_incrementally(key)
        last = keys[-1]
    _transactions(draw, table, draw(st.integers(0, 1)), meanwhile)
    ended = len(table.events)
    _transactions(draw, table, draw(st.integers(0, 2)))
    partition_of: dict[int | None, int] = {key: draw(st.integers(0, 1)) for key in (*KEYS, TEMPORARY_KEY)}
    return Told(table, began, ended, {**partition_of, None: 0})


def _transactions(draw: st.DrawFn, table: SourceTable, count: int, changes: Sequence[Act] = CHANGES) -> None:
    for _ in range(count):
        table.begin()
        draw(st.sampled_from(changes))(draw, table)
        table.commit()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("storage", "deletes"),
    [("merge_on_read", "hard"), pytest.param("copy_on_write", "soft", marks=pytest.mark.long)],
)
def test_after_a_snapshot_the_table_and_its_rebuild_equal_the_source(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, storage: Storage, deletes: Deletes
) -> None:
    policy = TablePolicy(storage=storage, deletes=deletes, buckets=2)

    @settings(max_examples=2)
    @given(told(), st.booleans())
    def check(history: Told, in_two_batches: bool) -> None:
        table = _table(spark, tmp_path_factory.mktemp("table"), history.rows(), policy)
        until = [history.began, len(history.table.events)] if in_two_batches else [len(history.table.events)]
        for events in until:
            ranges = tuple(OffsetRange(p, 0, end) for p, end in history.ends(events).items())
            if ranges:
                table.apply(ranges)
        if not table.state.has_table:
            return
        assert is_end_due(table, history.snapshot)
        end_snapshot(table, history.snapshot)
        table.forget()
        assert not is_end_due(table, history.snapshot)
        expected = {key: (row["name"], row["body"]) for key, row in history.table.rows.items()}
        assert _rows(table) == expected
        rebuild_table(table)
        assert _rows(table) == expected
        assert not is_end_due(table, history.snapshot)

    check()


@pytest.mark.timeout(600)
def test_a_table_that_begins_with_a_snapshot_needs_no_event_from_before_it(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(max_examples=2)
    @given(told())
    def check(history: Told) -> None:
        table = _table(spark, tmp_path_factory.mktemp("table"), history.rows(), TablePolicy(buckets=2))
        table.recover()
        table.begin_at(history.snapshot.began)
        extent = table.source.extents(frozenset({TOPIC}))[TOPIC]
        ranges = table.pending(extent, 999)
        assert all(r.first == history.snapshot.began.get(r.partition, 0) for r in ranges)
        if not ranges:
            return
        table.apply(ranges)
        if not table.state.has_table:
            return
        table.begin_at({})
        assert table.behind(extent) == 0, "a table that is there keeps its place"
        assert end_snapshot(table, history.snapshot).deletes == 0
        if table.ledger.snapshot is None or table.ledger.snapshot.quarantined:
            # A value that an update left unchanged, and that only an earlier event has.
            return
        expected = {key: (row["name"], row["body"]) for key, row in history.table.rows.items()}
        assert _rows(table) == expected

    check()


def test_the_end_waits_for_all_reads_and_is_never_of_another_topic(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, shop = _with_rows(spark, tmp_path, TablePolicy())
    began = len(shop.events)
    shop.read_incrementally(1)
    table.parts.reader.source = MemorySource(spark, _event_rows(shop), "topic")
    snapshot = Read(REQUEST, "topic", {0: began}, {0: began + 1})
    assert not is_end_due(table, snapshot)
    table.apply(table.pending(table.source.extents(frozenset({TOPIC}))[TOPIC], 99))
    assert is_end_due(table, snapshot)
    assert not is_end_due(table, Read(REQUEST, "another", {0: began}, {0: began + 1}))
    report = end_snapshot(table, snapshot)
    assert (report.events, report.deletes) == (0, 2)
    assert set(_rows(table)) == {1}


def test_a_part_of_a_table_removes_no_row_and_neither_does_a_snapshot_with_quarantined_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, shop = _with_rows(spark, tmp_path, TablePolicy())
    began = len(shop.events)
    part = Request("part", NAME, ("a partition was attached",), 0, condition="id = 1")
    end_snapshot(table, Read(part, None, {0: began}, {0: began}))
    assert set(_rows(table)) == {1, 2, 3}
    shop.read_incrementally(1)
    shop.send_garbage(b"not json")
    table.parts.reader.source = MemorySource(spark, _event_rows(shop))
    table.apply((OffsetRange(0, began, began + 2),))
    end_snapshot(table, Read(REQUEST, None, {0: began}, {0: began + 2}))
    assert set(_rows(table)) == {1, 2, 3}
    assert table.ledger.snapshot is not None
    assert (table.ledger.snapshot.id, table.ledger.snapshot.quarantined) == ("one", 1)


def test_what_a_snapshot_has_removed_stays_removed_after_one_that_removes_nothing_and_a_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, shop = _with_rows(spark, tmp_path, TablePolicy())
    began = len(shop.events)
    shop.read_incrementally(1)
    shop.send_garbage(b"not json")
    table.parts.reader.source = MemorySource(spark, _event_rows(shop))
    table.apply((OffsetRange(0, began, began + 1),))
    end_snapshot(table, Read(REQUEST, None, {0: began}, {0: began + 1}))
    assert set(_rows(table)) == {1}
    part = Request("part", NAME, ("a partition was attached",), 0, condition="id = 1")
    end_snapshot(table, Read(part, None, {0: began + 1}, {0: began + 1}))
    table.apply((OffsetRange(0, began + 1, began + 2),))
    quarantined = Request("quarantined", NAME, ("a test",), 0)
    end_snapshot(table, Read(quarantined, None, {0: began + 1}, {0: began + 2}))
    assert table.ledger.snapshot is not None
    assert (table.ledger.snapshot.id, table.ledger.snapshot.quarantined) == ("quarantined", 1)
    rebuild_table(table)
    assert set(_rows(table)) == {1}


def test_only_records_of_ended_snapshots_reach_the_run(spark: SparkSession, tmp_path: Path) -> None:
    store = SnapshotFiles(spark, f"file:{tmp_path}")
    assert store.read_ended() == {}
    records: list[Record] = [
        Requested(REQUEST),
        Reading(REQUEST, "topic", {0: 5}, 7, "definition", 1, 2),
        Read(REQUEST, "topic", {0: 5}, {0: 9, 1: 3}),
    ]
    file = tmp_path / RECORDS_FOLDER / "source/public/things.json"
    file.parent.mkdir(parents=True)
    for record in records:
        file.write_text(to_json(record))
        (file.parent / ".things.json.crc").unlink(missing_ok=True)
        assert store.read_ended() == ({str(NAME): record} if isinstance(record, Read) else {})
    file.write_text('{"state": "read", "of": "another version"}')
    assert store.read_ended() == {}


def test_the_last_looks_at_the_sources_reach_the_run(spark: SparkSession, tmp_path: Path) -> None:
    store = LookFiles(spark, f"file:{tmp_path}")
    assert store.read_looks() == {}
    file = tmp_path / look_name("shop")
    file.parent.mkdir(parents=True)
    file.write_text(
        '{"source": "shop", "tables": {"shop.a.b": {}}, "gone": ["shop.a.c"], "left_out": {"shop.a.d": {}}, '
        '"held_back": ["shop.a.d"]}'
    )
    known = frozenset({"shop.a.b", "shop.a.c", "shop.a.d"})
    assert store.read_looks() == {"shop": SourceLook("shop", known, frozenset({"shop.a.d"}))}


def test_the_records_of_paused_tables_reach_the_run(spark: SparkSession, tmp_path: Path) -> None:
    store = PauseFiles(spark, f"file:{tmp_path}")
    assert store.read_paused() == frozenset()
    names = (NAME, TableName("source", "public", 'od.d"one'))
    for number, name in enumerate(names):
        file = tmp_path / PAUSES_FOLDER / f"source/public/{number}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pause_to_json(Pause(name, "2026-01-02T03:04:05+00:00")))
    assert store.read_paused() == {str(name) for name in names}
    file.write_text("no record")
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    assert store.read_paused() == {str(NAME)}


def _with_rows(spark: SparkSession, path: Path, policy: TablePolicy) -> tuple[TableIngest, SourceTable]:
    shop = SourceTable()
    shop.begin()
    for key in (1, 2, 3):
        shop.insert(key, f"row {key}", None)
    shop.commit()
    table = _table(spark, path, _event_rows(shop), policy)
    table.parts.reader.source = MemorySource(spark, _event_rows(shop), "topic")
    table.apply(table.pending(table.source.extents(frozenset({TOPIC}))[TOPIC], 99))
    return table, shop


def _event_rows(shop: SourceTable) -> list[tuple[object, ...]]:
    return [event_row(event, offset) for offset, event in enumerate(shop.events)]


def _table(
    spark: SparkSession, path: Path, rows: list[tuple[object, ...]], policy: TablePolicy
) -> TableIngest:
    hudi = HudiTable(spark, str(path), "things", policy)
    quarantine = str(path / "quarantine")
    return TableIngest(
        str(NAME), TOPIC, MemorySource(spark, rows), hudi, quarantine, TopicForm(PostgresLog())
    )


def _rows(table: TableIngest) -> dict[int, tuple[Any, Any]]:
    stored = table.hudi.read()
    if "_deleted" in stored.columns:
        stored = stored.where("NOT _deleted")
    return {row["id"]: (row["name"], row["body"]) for row in stored.select("id", "name", "body").collect()}
