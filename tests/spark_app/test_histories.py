"""The lake table equals the source table after any history, however the events arrive."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from spark_app.columns.table_columns import SchemaConflict
from spark_app.hudi.compaction import schedule_compaction
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import last_commit
from spark_app.positions.postgres import PostgresLog
from spark_app.positions.source_log import SourceLog
from spark_app.sources.event import OffsetRange
from spark_app.table import batch_plan
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.soak import SOAKS
from tests.spark_app.debezium import TOPIC, Row, SentEvent, SourceTable, State, event_row
from tests.spark_app.faults import DEATHS, Death, compactions, death, take_back_compaction
from tests.spark_app.history import Delivery, deliveries, histories
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import Storage, TablePolicy

EXAMPLES = settings.get_profile("soak").max_examples if SOAKS else 2
POLICIES = [
    TablePolicy(storage=storage, deletes=deletes, buckets=2)
    for storage in ("merge_on_read", "copy_on_write")
    for deletes in ("hard", "soft")
]


@pytest.mark.parametrize("policy", first_then_long(POLICIES), ids=lambda p: f"{p.storage}-{p.deletes}")
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=tuple(Phase) if SOAKS else (Phase.explicit, Phase.reuse, Phase.generate),
)
@given(data=st.data())
def test_after_every_batch_the_lake_table_is_the_source_table_as_far_as_it_was_sent(
    spark: SparkSession, policy: TablePolicy, data: st.DataObject
) -> None:
    events = data.draw(histories())
    delivery = data.draw(deliveries(events))
    # Draw everything before Spark works, so that an example that turns out too large costs nothing.
    steps = data.draw(st.lists(STEPS, max_size=3))
    are_large = data.draw(st.booleans())
    event(f"large batches: {are_large}")
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        if are_large:
            patched.setattr(batch_plan, "EVENTS_OF_ONE_TASK", 0)
        run = _Run(spark, policy, events, delivery, Path(folder))
        for step in steps:
            run.take(step)
            run.check()
        run.apply_rest()
        run.check()
        assert run.is_at_end


@dataclass(frozen=True)
class _Apply:
    """A step to `shares` fourths of the rest of each partition; of a new table, or from where the table is.
    `death`: when the process ends meanwhile."""

    shares: tuple[int, int, int]
    from_start: bool = False
    death: Death | None = None


@dataclass(frozen=True)
class _Restart:
    pass


@dataclass(frozen=True)
class _Compact:
    """Compact after a separate batch, because without log files there is nothing to compact."""

    shares: tuple[int, int, int]
    how: Literal["whole", "only scheduled", "not completed"]


_SHARES = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
STEPS: st.SearchStrategy[_Apply | _Restart | _Compact] = st.one_of(
    st.builds(_Apply, shares=_SHARES, from_start=st.booleans()),
    st.builds(_Apply, shares=_SHARES, death=st.sampled_from(DEATHS)),
    st.builds(_Restart),
    st.builds(_Compact, _SHARES, st.sampled_from(["whole", "only scheduled", "not completed"])),
)
NONE: frozenset[str] = frozenset()


def test_a_batch_that_is_applied_twice_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sent = _small_history()
    run = _Run(spark, POLICIES[0], sent, Delivery((tuple(range(len(sent))),)), tmp_path)
    run.apply((OffsetRange(0, 0, len(sent)),))
    commit = last_commit(run.hudi)

    run.restart()
    run.apply((OffsetRange(0, 0, len(sent)),))

    assert last_commit(run.hudi) == commit
    run.check()


@pytest.mark.parametrize("first", [0, 1])
def test_the_half_of_a_changed_key_that_comes_first_waits_for_the_one_in_another_partition(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    source = SourceTable()
    source.begin()
    source.insert(1, "one", "a large body")
    source.commit()
    source.begin()
    source.move(1, 2)
    source.commit()
    leaves, arrives = (0, 1, 2), (3,)
    run = _Run(spark, POLICIES[0], source.events, Delivery((leaves, arrives)), tmp_path)

    run.apply((OffsetRange(first, 0, len(run.delivery.logs[first])),))

    assert run.table.ledger.positions == ({0: 1} if first == 0 else {})
    run.apply_rest()
    run.check()
    assert run.is_at_end


@pytest.mark.parametrize("policy", first_then_long(POLICIES[::3]), ids=lambda p: f"{p.storage}-{p.deletes}")
def test_a_truncate_ends_what_came_before_it_in_every_partition_and_nothing_that_came_after(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy
) -> None:
    source = SourceTable()
    source.begin()
    for key in (1, 2, 3):
        source.insert(key, "before", "body")
    source.commit()
    source.begin()
    source.truncate()
    source.insert(2, "after", "body")
    source.commit()
    source.begin()
    source.insert(1, "after", None)
    source.commit()
    with_truncate, ahead, behind = (3,), (1, 4), (0, 2, 5)
    run = _Run(spark, policy, source.events, Delivery((with_truncate, ahead, behind)), tmp_path)

    for ranges in (
        (OffsetRange(1, 0, 2), OffsetRange(2, 0, 1)),
        (OffsetRange(0, 0, 1),),
        (OffsetRange(2, 1, 2),),
        (OffsetRange(2, 2, 3),),
    ):
        run.apply(ranges)
        run.check()
    assert run.is_at_end


@pytest.mark.parametrize("policy", first_then_long(POLICIES[::3]), ids=lambda p: f"{p.storage}-{p.deletes}")
def test_a_row_that_is_read_again_after_a_column_was_dropped_has_no_value_there_any_more(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy
) -> None:
    source = SourceTable()
    source.add_column("ratio", "double")
    source.begin()
    for key in (1, 2):
        source.insert(key, "name", "body", ratio=0.5)
    source.commit()
    source.drop_column("ratio")
    source.snapshot()
    read_again = len(source.events)
    source.begin()
    source.truncate()
    source.commit()
    sent = source.events
    run = _Run(spark, policy, sent, Delivery((tuple(range(len(sent))),)), tmp_path)

    run.apply((OffsetRange(0, 0, read_again),))
    run.check()
    assert [row["ratio"] for row in run.hudi.read().collect()] == [None, None]
    run.apply_rest()
    run.check()


@pytest.mark.parametrize("policy", first_then_long(POLICIES[::2]), ids=lambda p: p.storage)
def test_where_types_have_widened_all_rows_are_read_in_the_new_ones_and_old_commits_as_they_were(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy
) -> None:
    source = SourceTable()
    for name, data_type in (("count", "int"), ("ratio", "real"), ("price", "numeric(8,2)")):
        source.add_column(name, data_type)
    source.begin()
    source.insert(
        1, "one", None, count=1, ratio=struct.unpack("f", struct.pack("f", 0.1))[0], price=Decimal("1.25")
    )
    source.insert(2, "two", None, count=2, ratio=2.0, price=Decimal("2.00"))
    source.update(1, "changed", None, body_is_unchanged=True)
    source.commit()
    narrow = len(source.events)
    source.columns |= {"count": "bigint", "ratio": "double", "price": "numeric(12,4)"}
    source.begin()
    source.change(2, {"name": "wide", "count": 2**40, "ratio": 0.1, "price": Decimal("12345678.1234")}, NONE)
    source.insert(3, "three", None)
    source.commit()
    sent = source.events
    run = _Run(spark, policy, sent, Delivery((tuple(range(len(sent))),)), tmp_path)
    run.apply((OffsetRange(0, 0, 2),))
    run.apply((OffsetRange(0, 2, narrow),))
    before, commit = _read_by_spark(run.hudi.read()), last_commit(run.hudi)
    assert commit is not None

    run.apply_rest()
    run.check()
    if policy.storage == "merge_on_read":
        run.compact("whole")
        run.check()

    as_it_was = spark.read.format("hudi").option("as.of.instant", commit.instant).load(run.hudi.path)
    assert _by_key(_read_by_spark(as_it_was)) == _by_key(before)


@pytest.mark.parametrize("policy", first_then_long(POLICIES), ids=lambda p: f"{p.storage}-{p.deletes}")
def test_a_table_with_arrays_is_read_before_and_after_a_column_is_added_to_it(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy
) -> None:
    source = SourceTable()
    source.add_column("tags", "text[]")
    ends = []
    for key, added in ((1, {}), (2, {}), (3, {"count": "int"}), (4, {"numbers": "int[]"}), (1, {})):
        for name, data_type in added.items():
            source.add_column(name, data_type)
        source.begin()
        source.insert(key, "new", "body", tags=[None, str(key)], **dict.fromkeys(added))
        source.commit()
        ends.append(len(source.events))
    run = _Run(spark, policy, source.events, Delivery((tuple(range(ends[-1])),)), tmp_path)
    for begin, end in pairwise([0, *ends]):
        run.apply((OffsetRange(0, begin, end),))
        run.check()


@pytest.mark.parametrize("storage", first_then_long(["merge_on_read", "copy_on_write"]))
def test_each_row_of_a_table_that_parts_of_its_key_partition_is_in_its_keys_partition(
    spark: SparkSession, tmp_path: Path, storage: Storage
) -> None:
    _partition_by_a_part_of_the_key(spark, tmp_path, storage)


@pytest.mark.long
@pytest.mark.usefixtures("plainly")
def test_each_row_is_in_its_keys_partition_without_java_too(spark: SparkSession, tmp_path: Path) -> None:
    # The two ways differ in the writer of merge-on-read tables.
    run = _partition_by_a_part_of_the_key(spark, tmp_path, "merge_on_read")
    rebuild_table(run.table, patience_seconds=0)
    run.check()
    _assert_in_partitions(run.hudi)


def _partition_by_a_part_of_the_key(spark: SparkSession, tmp_path: Path, storage: Storage) -> _Run:
    policy = TablePolicy(storage=storage, buckets=1, partition_by=("right(id, 1)",))
    source, ends = SourceTable(), []

    def commit() -> None:
        source.commit()
        ends.append(len(source.events))

    source.begin()
    for key in (7, 17, 28, 38, 47):
        source.insert(key, f"name {key}", "a large body")
    commit()
    source.begin()
    source.move(17, 58)
    source.update(28, "changed", None, body_is_unchanged=True)
    source.delete(38)
    source.insert(17, "another row", None)
    commit()
    source.begin()
    source.add_column("added", "text")
    source.insert(38, "again", None, added="new")
    source.move(47, 67)
    source.delete(7)
    source.truncate()
    source.insert(7, "after the truncate", None, added=None)
    commit()
    run = _Run(spark, policy, source.events, Delivery((tuple(range(ends[-1])),)), tmp_path)
    for begin, end in pairwise([0, *ends]):
        run.apply((OffsetRange(0, begin, end),))
        run.check()
        _assert_in_partitions(run.hudi)
    assert run.table.columns is not None
    assert not [name for name in run.table.columns.names if "__" in name]
    return run


def _assert_in_partitions(table: HudiTable) -> None:
    found = table.read().select("id", "_hoodie_partition_path").collect()
    places = {row["id"]: row["_hoodie_partition_path"] for row in found}
    assert places == {key: f"id__right_1={str(key)[-1]}" for key in places}
    assert set(places.values()) <= table.partitions()
    assert {row["id"]: row["id__right_1"] for row in _read_by_hudi_rs(table)} == {
        key: str(key)[-1] for key in places
    }


@pytest.mark.parametrize("storage", ["merge_on_read", "copy_on_write"])
def test_a_type_that_no_wider_one_holds_blocks_the_table_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, storage: Literal["merge_on_read", "copy_on_write"]
) -> None:
    source = SourceTable()
    source.add_column("code", "int")
    source.begin()
    source.insert(1, "one", "body", code=1)
    source.commit()
    fitting = len(source.events)
    source.drop_column("code")
    source.add_column("code", "text")
    source.begin()
    source.insert(2, "two", "body", code="A")
    source.commit()
    sent = source.events
    run = _Run(
        spark, TablePolicy(storage=storage, buckets=1), sent, Delivery((tuple(range(len(sent))),)), tmp_path
    )
    run.apply((OffsetRange(0, 0, fitting),))

    for _ in range(2):
        with pytest.raises(SchemaConflict, match=r"column code: .* found string, expected int"):
            run.apply((OffsetRange(0, fitting, len(sent)),))
        assert run.table.ledger.positions == {0: fitting}
        run.check()
        run.restart()


def _small_history() -> list[SentEvent]:
    source = SourceTable()
    source.begin()
    source.insert(1, "one", "body")
    source.insert(2, "two", None)
    source.commit()
    source.begin()
    source.delete(2)
    source.commit()
    return source.events


@dataclass
class _Run:
    """A lake table that follows a topic, and its expected contents."""

    spark: SparkSession
    policy: TablePolicy
    events: list[SentEvent]
    delivery: Delivery
    folder: Path
    log: SourceLog = field(default_factory=PostgresLog)
    last_seq: dict[str, int] = field(default_factory=dict)
    _table: TableIngest | None = None

    @property
    def hudi(self) -> HudiTable:
        return HudiTable(self.spark, str(self.folder / "silver"), "things", self.policy)

    @property
    def table(self) -> TableIngest:
        if self._table is None:
            rows = [
                event_row(self.events[number], offset, partition)
                for partition, log in enumerate(self.delivery.logs)
                for offset, number in enumerate(log)
            ]
            self._table = TableIngest(
                name="source.public.things",
                topic=TOPIC,
                source=MemorySource(self.spark, rows),
                hudi=self.hudi,
                quarantine_path=str(self.folder / "quarantine"),
                form=TopicForm(self.log),
            )
        return self._table

    @property
    def is_at_end(self) -> bool:
        ends = {partition: len(log) for partition, log in enumerate(self.delivery.logs) if log}
        return self.table.ledger.positions == ends

    def take(self, step: _Apply | _Restart | _Compact) -> None:
        event(f"step: {type(step).__name__}")
        match step:
            case _Apply(death=None):
                self.apply(self._ranges(step.shares, step.from_start))
            case _Apply(death=str(when)):
                event(f"death: {when}")
                with death(when):
                    self.apply(self._ranges(step.shares))
                self.restart()
            case _Restart():
                self.restart()
            case _Compact(shares, how) if self.policy.storage == "merge_on_read":
                event(f"compaction: {how}")
                self.apply(self._ranges(shares))
                self.compact(how)

    def _ranges(self, shares: tuple[int, int, int], from_start: bool = False) -> tuple[OffsetRange, ...]:
        positions = self.table.ledger.positions
        found = []
        for partition, (log, share) in enumerate(zip(self.delivery.logs, shares, strict=False)):
            position = positions.get(partition, 0)
            until = position + (len(log) - position) * share // 4
            found.append(OffsetRange(partition, 0 if from_start else position, until))
        return tuple(r for r in found if r.length > 0)

    def restart(self) -> None:
        self._table = None

    def apply(self, ranges: tuple[OffsetRange, ...]) -> None:
        extent = self.table.source.extents(frozenset({TOPIC})).get(TOPIC)
        if ranges and extent is not None:
            self.table.pending(extent, len(self.events))
            self.table.apply(ranges)

    def apply_rest(self) -> None:
        """Apply until nothing changes: a batch can end before a key change of which it holds one half."""
        before: Mapping[int, int] | None = None
        while before != self.table.ledger.positions:
            before = self.table.ledger.positions
            self.apply(
                tuple(
                    OffsetRange(partition, before.get(partition, 0), len(log))
                    for partition, log in enumerate(self.delivery.logs)
                    if len(log) > before.get(partition, 0)
                )
            )

    def compact(self, how: str) -> None:
        if not self.hudi.exists() or last_commit(self.hudi) is None:
            return
        before = compactions(self.hudi)
        if how == "only scheduled":
            schedule_compaction(self.hudi.access)
        else:
            self.hudi.compact()
        if how == "not completed":
            take_back_compaction(self.hudi, before)
        if how != "whole":
            self.restart()

    def check(self) -> None:
        """Compare the rows, as Spark and hudi-rs read them, and the quarantine with the source."""
        positions = self.table.ledger.positions
        consumed = [log[: positions.get(p, 0)] for p, log in enumerate(self.delivery.logs)]
        numbers = {number for log in consumed for number in log}
        present, deleted = _expected(self.events, numbers)
        by_spark = _read_by_spark(self.hudi.read()) if self.hudi.exists() else []
        assert len({row["_key"] for row in by_spark}) == len(by_spark)
        _assert_rows(by_spark, present, deleted, self.policy)
        if self.hudi.exists():
            parts = {part.name for part in self.policy.key_parts}
            by_hudi_rs = [
                {name: value for name, value in row.items() if name not in parts}
                for row in _read_by_hudi_rs(self.hudi)
            ]
            assert _by_key(by_hudi_rs) == _by_key(by_spark)
        self._assert_no_row_went_back(by_spark)
        garbage = sum(self.events[number].kind == "garbage" for log in consumed for number in log)
        # A batch that was set aside but did not become a commit is set aside again.
        assert self._quarantined() >= garbage
        if self.is_at_end:
            assert self._quarantined() == garbage

    def _assert_no_row_went_back(self, rows: list[Row]) -> None:
        for row in rows:
            assert row["_seq"] >= self.last_seq.get(row["_key"], -1)
            self.last_seq[row["_key"]] = row["_seq"]

    def _quarantined(self) -> int:
        if not (self.folder / "quarantine").exists():
            return 0
        rows = self.spark.read.parquet(str(self.folder / "quarantine" / "*"))
        return rows.select("partition", "offset").distinct().count()


def _expected(events: list[SentEvent], numbers: set[int]) -> tuple[State, State]:
    """Return each key's row after the last of these events that affects it: its own events and truncates."""
    present: State = {}
    deleted: State = {}
    truncates = [number for number in numbers if events[number].kind == "truncate"]
    last_truncate = max(truncates, default=-1)
    for key in {events[number].of_key for number in numbers} - {None}:
        assert key is not None
        own = max(number for number in numbers if events[number].of_key == key)
        last = events[max(own, last_truncate)]
        if key in last.state:
            present[key] = last.state[key]
        elif key in events[own].state:
            deleted[key] = events[own].state[key]
        else:
            deleted[key] = events[own].deleted[key]
    return present, deleted


def _assert_rows(rows: list[Row], present: State, deleted: State, policy: TablePolicy) -> None:
    found = {row["id"]: _own(row) for row in rows if not row.get("_deleted")}
    assert found == _filled(present, rows)
    if policy.deletes == "soft":
        gone = {row["id"]: _own(row) for row in rows if row.get("_deleted")}
        assert gone == _filled(deleted, rows)


def _read_by_spark(found: DataFrame) -> list[Row]:
    columns = [name for name in found.columns if not name.startswith("_hoodie_")]
    rows = [row.asDict() for row in found.select(*columns).collect()]
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _read_by_hudi_rs(table: HudiTable) -> list[Row]:
    batches = HudiTableBuilder.from_base_uri(f"file://{table.path}").build().read()
    rows: list[Row] = pa.Table.from_batches(batches).to_pylist() if batches else []
    return [
        {name: _plain(value) for name, value in row.items() if not name.startswith("_hoodie_")}
        for row in rows
    ]


def _plain(value: object) -> object:
    """Convert values for which Spark and Arrow have different forms to one form."""
    if isinstance(value, bytearray):
        return bytes(value)
    if getattr(value, "tzinfo", None) is not None:
        offset = value.utcoffset()  # type: ignore[attr-defined]
        return value.replace(tzinfo=None) - (offset or timedelta())  # type: ignore[attr-defined]
    return value


def _by_key(rows: list[Row]) -> dict[str, Row]:
    found = {str(row["_key"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def _own(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _filled(expected: State, rows: list[Row]) -> State:
    """Fill in the missing columns.

    A column that no event has named yet is not in the lake. A column that exists is null in older rows."""
    names = [name for name in (rows[0] if rows else {}) if not name.startswith("_")]
    return {
        key: {name: row.get(name) for name in names} | {n: v for n, v in row.items() if v is not None}
        for key, row in expected.items()
    }
