"""The lake has the newest change of each item, however late, often and disordered the changes come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hudi import HudiTableBuilder
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.columns.table_columns import DELETED
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.dynamodb import ItemLog
from spark_app.sources.event import OffsetRange
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.items.item_columns import OTHER_ATTRIBUTES, column_of
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.soak import SOAKS
from tests.spark_app.faults import DEATHS, Death, death
from tests.spark_app.items.generated import VALUES, Plain, Sent
from tests.spark_app.items.reference import plain, read_back, read_json, stored
from tests.spark_app.memory_source import MemorySource
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import TablePolicy

TOPIC = "shop.shop.dynamodb.orders"
START_US = 1_790_000_000_000_000
FIRST_SEQUENCE = 49_590_338_271_490_256_608_559_692_538_361_571_095_921_575_989_136_588_898
EXAMPLES = settings.get_profile("soak").max_examples if SOAKS else 2
HARD = TablePolicy(buckets=2)
POLICIES = [
    HARD,
    TablePolicy(buckets=2, storage="copy_on_write"),
    TablePolicy(buckets=2, deletes="soft"),
    TablePolicy(buckets=1, partition_by=("hash(id, 2)",)),
]
IDS = ["merge_on_read-hard", "copy_on_write-hard", "merge_on_read-soft", "partitioned"]

_VALUES = st.dictionaries(st.sampled_from(["total", "state", "Total"]), VALUES, max_size=3)


@st.composite
def changes(draw: st.DrawFn) -> list[Sent]:
    """Return the changes of few items in the order of their times, some of which are the same."""
    found, time_us = [], START_US
    in_milliseconds = draw(st.booleans())
    for _ in range(draw(st.integers(2, 12))):
        time_us += draw(st.sampled_from([0, 1, 700, 5_000, 90_000_000]))
        values = draw(st.none() | _VALUES)
        found.append(Sent(draw(st.sampled_from("abc")), time_us, values, in_milliseconds=in_milliseconds))
    return found


@dataclass(frozen=True)
class Arrived:
    """A change in a shard, with the sequence number that it got there."""

    sent: Sent
    partition: int
    sequence: int

    @property
    def place(self) -> tuple[int, int]:
        at = self.sent.time_us
        return (at // 1000 * 1000 if self.sent.in_milliseconds else at), self.sequence


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrived]:
    """Return the changes in the order of their arrival: some come late, some twice, in several shards."""
    sent = draw(changes())
    repeated = [each for each in sent if draw(st.integers(0, 3)) == 0]
    late = draw(st.permutations([*sent, *repeated]))
    shards = draw(st.integers(1, 3))
    return [
        Arrived(
            each, draw(st.integers(0, shards - 1)), FIRST_SEQUENCE + number * draw(st.sampled_from([1, 7]))
        )
        for number, each in enumerate(late)
    ]


@dataclass(frozen=True)
class Step:
    """Apply up to this many changes more of each shard. `death`: when the process ends meanwhile."""

    most: tuple[int, int, int]
    death: Death | None = None
    compacts: bool = False


_MOST = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
STEPS = st.one_of(
    st.builds(Step, _MOST),
    st.builds(Step, _MOST, death=st.sampled_from(DEATHS)),
    st.builds(Step, _MOST, compacts=st.just(value=True)),
)


@pytest.mark.parametrize("policy", first_then_long(POLICIES), ids=IDS)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=tuple(Phase) if SOAKS else (Phase.explicit, Phase.reuse, Phase.generate),
)
@given(data=st.data())
def test_after_every_batch_each_row_is_that_of_its_newest_change(
    spark: SparkSession, policy: TablePolicy, data: st.DataObject
) -> None:
    arrived = data.draw(arrivals())
    steps = data.draw(st.lists(STEPS, min_size=1, max_size=3))
    with TemporaryDirectory() as folder:
        run = _Run(spark, policy, arrived, Path(folder))
        for step in steps:
            run.take(step)
            run.check()
        run.apply_rest()
        run.check()


def _arrived(*sent: Sent) -> list[Arrived]:
    return [Arrived(each, 0, FIRST_SEQUENCE + number) for number, each in enumerate(sent)]


PUT, LATER = Sent("a", START_US, {"state": "old"}), Sent("a", START_US + 5, {"state": "new"})
GONE = Sent("a", START_US + 9, None)
OTHER = Sent("b", START_US, {"state": "other"})


@pytest.mark.parametrize("policy", first_then_long(POLICIES), ids=IDS)
def test_no_late_change_brings_a_deleted_row_back(
    spark: SparkSession, tmp_path: Path, policy: TablePolicy
) -> None:
    run = _Run(spark, policy, _arrived(OTHER, PUT, GONE, LATER, PUT), tmp_path)

    for most in (2, 1, 1, 1):
        run.take(Step((most, 0, 0), compacts=policy == HARD))
        run.check()
    assert run.ids() == {"b"}


def test_a_late_change_among_recent_ones_needs_no_look_at_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _Run(spark, HARD, _arrived(OTHER, GONE, LATER, Sent("b", START_US + 12, {}), PUT), tmp_path)
    run.take(Step((1, 0, 0)))

    def refuse(*_: object) -> None:
        raise AssertionError("the table is looked at")

    with monkeypatch.context() as patched:
        patched.setattr("spark_app.table.newer_rows.stored_positions", refuse)
        for _ in range(4):
            run.take(Step((1, 0, 0)))
    run.check()
    assert run.ids() == {"b"}

    run.restart()
    run.arrived = [*run.arrived, *_arrived(Sent("c", START_US, {}), *[LATER] * 5)]
    monkeypatch.setattr("spark_app.table.newer_rows.stored_positions", refuse)
    with pytest.raises(AssertionError, match="looked at"):
        run.take(Step((1, 0, 0)))


def test_after_its_time_a_deleted_key_is_forgotten(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This proves that the rows above stay away by what is remembered.

    A copy-on-write table keeps nothing of a deleted row. In a merge-on-read table, a log file would."""
    monkeypatch.setattr("spark_app.table.deleted_keys.MOST_FOLDERS", 0)
    monkeypatch.setattr("spark_app.table.deleted_keys.RESOLUTION", timedelta(microseconds=1))
    run = _Run(spark, POLICIES[1], _arrived(OTHER, PUT, GONE, LATER), tmp_path, timedelta(0))

    for most in (2, 1, 1):
        run.restart()
        run.take(Step((most, 0, 0)))
    assert run.ids() == {"a", "b"}


def test_many_batches_with_deletes_leave_few_folders(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_app.table.deleted_keys.MOST_FOLDERS", 2)
    sent = [Sent(str(number), START_US + 10 + number, None) for number in range(4)]
    late = [Sent(str(number), START_US + number, {"state": "late"}) for number in range(4)]
    run = _Run(spark, HARD, _arrived(OTHER, *sent, *late), tmp_path)

    for _ in range(5):
        run.take(Step((1, 0, 0)))
    assert len(list((tmp_path / "deleted").iterdir())) <= 3
    run.apply_rest()
    assert run.ids() == {"b"}


def test_deletes_are_merged_while_a_late_change_is_looked_up_among_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_app.table.deleted_keys.MOST_FOLDERS", 1)
    sent = [OTHER]
    for number in range(1, 4):
        sent += [
            Sent(str(number), START_US + 10 * number, None),
            Sent("1", START_US + number, {"state": "late"}),
        ]
    run = _Run(spark, HARD, _arrived(*sent), tmp_path)

    run.take(Step((1, 0, 0)))
    for _ in range(3):
        run.take(Step((2, 0, 0)))
        run.check()
    assert len(list((tmp_path / "deleted").iterdir())) <= 2


@pytest.mark.parametrize("end", DEATHS)
def test_a_repeated_batch_reads_the_deletes_that_its_first_attempt_has_written(
    spark: SparkSession, tmp_path: Path, end: Death
) -> None:
    gone = Sent("b", START_US + 20, None)
    run = _Run(spark, HARD, _arrived(OTHER, LATER, PUT, gone), tmp_path)
    run.take(Step((2, 0, 0)))

    run.take(Step((2, 0, 0), death=end))
    run.take(Step((2, 0, 0)))
    run.check()
    assert run.ids() == {"a"}


def test_a_rebuild_has_the_same_rows_and_remembers_the_deletes(spark: SparkSession, tmp_path: Path) -> None:
    run = _Run(spark, HARD, _arrived(OTHER, LATER, PUT, GONE, LATER), tmp_path)
    run.take(Step((4, 0, 0)))
    run.restart()

    arrived = run.arrived
    run.arrived = arrived[:4]
    rebuild_table(run.table, patience_seconds=0)
    run.check()

    run.arrived = arrived
    run.restart()
    run.apply_rest()
    run.check()
    assert run.ids() == {"b"}


def test_a_column_that_becomes_text_has_the_texts_that_it_would_have_had(
    spark: SparkSession, tmp_path: Path
) -> None:
    from decimal import Decimal

    values: Sequence[Plain] = (
        Decimal("10.50"),
        Decimal(7),
        True,
        b"\0\xff",
        frozenset({"b", "a"}),
        frozenset({Decimal("1.5"), Decimal(2)}),
        frozenset({b"a"}),
    )
    first = [Sent(str(n), START_US + n, {f"c{n}": value}) for n, value in enumerate(values)]
    then = [Sent(f"then {n}", START_US + n, {f"c{n}": "text"}) for n in range(len(values))]
    run = _Run(spark, HARD, _arrived(*first, *then), tmp_path)

    run.take(Step((len(first), 0, 0)))
    run.check()
    run.apply_rest()
    run.check()
    assert all(kind == "string" for name, kind in run.hudi.read().dtypes if name.startswith("c"))


@dataclass
class _Run:
    """A lake table of items, and what it has to hold."""

    spark: SparkSession
    policy: TablePolicy
    arrived: list[Arrived]
    folder: Path
    remembered: timedelta = timedelta(hours=24)
    _table: TableIngest | None = field(default=None, init=False)

    @property
    def hudi(self) -> HudiTable:
        return HudiTable(self.spark, str(self.folder / "silver"), "orders", self.policy)

    @property
    def table(self) -> TableIngest:
        if self._table is None:
            rows: list[tuple[object, ...]] = []
            for partition in range(3):
                log = self.log(partition)
                for offset, each in enumerate(log):
                    sequence, value = bytearray(str(each.sequence), "ascii"), bytearray(each.sent.data)
                    rows.append((TOPIC, partition, offset, None, sequence, value, None, None))
            self._table = TableIngest(
                name="shop.dynamodb.orders",
                topic=TOPIC,
                source=MemorySource(self.spark, rows),
                hudi=self.hudi,
                quarantine_path=str(self.folder / "quarantine"),
                form=TopicForm(ItemLog(), items=ItemRules(remembered=self.remembered)),
                deleted_path=str(self.folder / "deleted"),
            )
        return self._table

    def log(self, partition: int) -> list[Arrived]:
        return [each for each in self.arrived if each.partition == partition]

    def restart(self) -> None:
        self._table = None

    def take(self, step: Step) -> None:
        positions = self.table.ledger.positions
        ranges = tuple(
            OffsetRange(partition, first, until)
            for partition, most in enumerate(step.most)
            for first in [positions.get(partition, 0)]
            for until in [min(first + most, len(self.log(partition)))]
            if until > first
        )
        if not ranges:
            return
        if step.death is None:
            self.table.apply(ranges)
            if step.compacts and self.policy.storage == "merge_on_read" and self.hudi.exists():
                self.table.serve()
        else:
            with death(step.death):
                self.table.apply(ranges)
            self.restart()

    def apply_rest(self) -> None:
        self.take(Step((10**6, 10**6, 10**6)))

    def newest(self) -> Mapping[str, Arrived]:
        """Return the newest of the applied changes by the item's id: the reference model."""
        positions = self.table.ledger.positions
        applied = [
            each for partition in range(3) for each in self.log(partition)[: positions.get(partition, 0)]
        ]
        return {each.sent.id: each for each in sorted(applied, key=lambda each: each.place)}

    def check(self) -> None:
        """Compare all rows, read by Spark and by hudi-rs, with the newest changes."""
        newest = self.newest()
        if not self.hudi.exists():
            assert not newest
            return
        frame = self.hudi.read()
        types = {name: frame.schema[name].dataType for name in frame.columns}
        rows = {row["id"]: row.asDict() for row in frame.collect()}
        there = {key for key, row in rows.items() if not row.get(DELETED)}
        assert there == {key for key, each in newest.items() if each.sent.values is not None}
        for key in there:
            self._check_row(rows[key], newest[key], types)
        assert self.ids() == there

    def _check_row(self, row: Mapping[str, Any], newest: Arrived, types: Mapping[str, Any]) -> None:
        rest = read_json(row[OTHER_ATTRIBUTES]) if row.get(OTHER_ATTRIBUTES) else {}
        assert newest.sent.values is not None
        for name, value in newest.sent.values.items():
            column = column_of(name)
            if column in types:
                found = None if row[column] is None else read_back(row[column], value, types[column])
                assert found == stored(value, types[column])
            elif value is not None:
                assert rest.pop(name) == plain(value)
        assert not rest
        named = {column_of(name) for name in newest.sent.values} | {"id", OTHER_ATTRIBUTES}
        others = {name for name in row if not name.startswith("_")} - named
        assert all(row[name] is None for name in others)

    def ids(self) -> set[str]:
        """Return the ids of the rows that hudi-rs finds."""
        batches = HudiTableBuilder.from_base_uri(f"file://{self.folder}/silver").build().read()
        rows = [row for batch in batches for row in batch.to_pylist()]
        return {row["id"] for row in rows if not row.get(DELETED)}
