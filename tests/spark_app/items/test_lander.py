"""Every record of a stream lands once, in the order of its shard, whatever happens to stream and app."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_app.sources.kinesis import item_tables
from spark_app.sources.kinesis.item_tables import Page
from spark_app.sources.kinesis.lander import SECONDS_BETWEEN_LISTS, Lander, RecordsLost
from spark_app.sources.kinesis.landing import Landed, chunks_of, ends_of
from spark_app.sources.kinesis.places import Shard, ShardPlace, StreamPlaces, readable
from spark_app.sources.kinesis.shard_reader import FIRST_WAIT_SECONDS, SECONDS_BETWEEN_READS, ShardReader
from spark_app.sources.kinesis.stream import (
    Answer,
    IteratorExpired,
    Record,
    StreamFacts,
    StreamUnreadable,
    Throttled,
)
from spark_app.wire.items.record import read_record

HOUR_MS = 3_600_000


@dataclass
class FakeShard:
    shard: Shard
    records: list[Record] = field(default_factory=list)
    is_closed: bool = False
    trimmed: int = 0


@dataclass
class FakeStream:
    """A stream in memory, with the rules of Kinesis: iterators, closed shards, and records that it deletes.

    failures  raised by the next requests, one each; None: that request succeeds
    most      the most records of an answer
    """

    shards_by_id: dict[str, FakeShard] = field(default_factory=dict)
    created: str = "2026-01-01"
    failures: list[Exception | None] = field(default_factory=list)
    most: int = 2
    sequence: int = 10**55
    now_ms: int = 1_790_000_000_000
    retention_ms: int = 24 * HOUR_MS

    def __post_init__(self) -> None:
        self.open("s0")

    def open(self, name: str, *parents: str) -> None:
        self.shards_by_id[name] = FakeShard(Shard(name, parents))
        for parent in parents:
            self.shards_by_id[parent].is_closed = True

    def put(self, shard: str, data: bytes) -> None:
        self.sequence += 7
        record = Record(str(self.sequence), self.now_ms, "key", data)
        self.shards_by_id[shard].records.append(record)

    def facts(self) -> StreamFacts:
        self._fail()
        return StreamFacts(self.created, self.retention_ms)

    def shards(self) -> tuple[Shard, ...]:
        return tuple(each.shard for each in self.shards_by_id.values())

    def iterator(self, shard: str, sequence: str | None, *, includes_it: bool = False) -> str:
        found = self.shards_by_id[shard]
        numbers = [int(record.sequence) for record in found.records]
        first = 0
        if sequence is not None:
            first = sum(number < int(sequence) + (not includes_it) for number in numbers)
        return f"{shard}/{max(first, found.trimmed)}"

    def read(self, iterator: str) -> Answer:
        self._fail()
        shard, _, place = iterator.partition("/")
        found, first = self.shards_by_id[shard], int(place)
        records = tuple(found.records[first : first + self.most])
        until = first + len(records)
        # As in Kinesis, the last records of a closed shard can come with one more iterator.
        is_over = found.is_closed and not records
        behind_ms = 0 if until == len(found.records) else 1_000
        return Answer(records, None if is_over else f"{shard}/{until}", behind_ms)

    def _fail(self) -> None:
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure


@dataclass
class FakeTables:
    """A table of items in memory, whose pages have an item each. `failures` are raised, one each."""

    items: list[str]
    failures: list[Exception] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        return ("a",)

    def page(self, table: str, begin: str | None) -> Page:  # noqa: ARG002
        if self.failures:
            raise self.failures.pop(0)
        at = int(begin or "0")
        found = [{"id": {"S": item}, "raw": {"B": bytes(1)}} for item in self.items[at : at + 1]]
        following = str(at + 1) if at + 1 < len(self.items) else None
        return Page(found, ("id",), 1_790_000_000_000, following)


class Crash(BaseException):
    """The end of the process."""


@dataclass(frozen=True)
class Row:
    """A record in bronze."""

    topic: str
    partition: int
    offset: int
    shard: str
    record: Record


@dataclass
class FakeLanding:
    """Bronze in memory. `crashes` say, for the next commits, whether the app dies before or after them."""

    rows: list[Row] = field(default_factory=list)
    places: StreamPlaces = field(default_factory=StreamPlaces)
    crashes: list[str | None] = field(default_factory=list)
    commits: int = 0

    def read_places(self) -> StreamPlaces:
        return StreamPlaces.from_json(self.places.to_json())

    def land(self, places: StreamPlaces, landed: Iterable[Landed]) -> StreamPlaces:
        crash = self.crashes.pop(0) if self.crashes else None
        if crash == "before":
            raise Crash
        read = tuple(landed)
        chunks = chunks_of(places, read, topic_of)
        self.rows += [
            Row(chunk.topic, chunk.partition, offset, chunk.shard, record)
            for chunk in chunks
            for offset, record in enumerate(chunk.records, chunk.first)
        ]
        self.places = places.with_places(each.place for each in read).with_offsets(ends_of(chunks))
        self.commits += 1
        if crash == "after":
            raise Crash
        return self.places

    def landed(self) -> Mapping[tuple[str, str], list[tuple[int, str, bytes]]]:
        """Return offset, sequence number and data of each record by topic and shard, as they landed."""
        found: dict[tuple[str, str], list[tuple[int, str, bytes]]] = {}
        for row in self.rows:
            place = row.offset, row.record.sequence, row.record.data
            found.setdefault((row.topic, row.shard), []).append(place)
        return found


def topic_of(data: bytes) -> str | None:
    return {b"a": "topic a", b"b": "topic b", b"{": "items"}.get(data[:1])


@dataclass
class World:
    stream: FakeStream = field(default_factory=FakeStream)
    bronze: FakeLanding = field(default_factory=FakeLanding)
    seconds: float = 0.0
    allows_gaps: bool = False
    tables: FakeTables | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        stream, bronze, tables = self.stream, self.bronze, self.tables
        clock, now = (lambda: self.seconds), (lambda: self.stream.now_ms)
        self.lander = Lander("stream", stream, bronze, tables, self.allows_gaps, clock, now)

    def step(self) -> bool:
        self.seconds += 1
        self.stream.now_ms += 1_000
        return self.lander.step()

    def land_all(self) -> None:
        for _ in range(1_000):
            self.step()
            if self.lander.is_at_end:
                return
        raise AssertionError("it never came to the end")

    def check(self) -> None:
        """Compare bronze with everything that the stream has ever had."""
        expected: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
        for name, shard in self.stream.shards_by_id.items():
            for record in shard.records:
                if (topic := topic_of(record.data)) is not None:
                    expected.setdefault((topic, name), []).append((record.sequence, record.data))
        landed = self.bronze.landed()
        assert {at: [(seq, data) for _, seq, data in rows] for at, rows in landed.items()} == expected
        for rows in landed.values():
            assert [offset for offset, _, _ in rows] == list(range(len(rows)))
        partitions = {(row.shard, row.partition) for row in self.bronze.rows}
        assert len({shard for shard, _ in partitions}) == len(partitions) == len({p for _, p in partitions})


EVENTS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abx")),
    st.tuples(
        st.sampled_from(["split", "merge", "step", "restart", "throttle", "expire", "fail"]), st.none()
    ),
    st.tuples(st.just("crash"), st.sampled_from(["before", "after"])),
)


@settings(max_examples=200)
@given(st.lists(EVENTS, max_size=30), st.randoms(use_true_random=False))
def test_every_record_lands_once_and_in_order(events: list[tuple[str, str | None]], random: Any) -> None:
    world = World()
    stream = world.stream
    for number, (what, which) in enumerate(events):
        open_shards = [name for name, shard in stream.shards_by_id.items() if not shard.is_closed]
        match what:
            case "put":
                stream.put(random.choice(open_shards), f"{which}{number}".encode())
            case "split":
                parent = random.choice(open_shards)
                stream.open(f"left {number}", parent)
                stream.open(f"right {number}", parent)
            case "merge" if len(open_shards) > 1:
                stream.open(f"merged {number}", *random.sample(open_shards, 2))
            case "restart":
                world.restart()
            case "throttle":
                stream.failures.append(Throttled("slow down"))
            case "expire":
                stream.failures.append(IteratorExpired("too old"))
            case "fail":
                stream.failures.append(OSError("no network"))
            case "crash":
                world.bronze.crashes.append(which)
            case _:
                _survive(world)
    world.bronze.crashes.clear()
    stream.failures.clear()
    world.seconds += SECONDS_BETWEEN_LISTS
    world.land_all()
    world.check()


def _survive(world: World) -> None:
    try:
        world.step()
    except Crash:
        world.restart()
    except OSError:
        pass


def test_a_child_waits_until_its_parents_are_over() -> None:
    world = World()
    for number in range(5):
        world.stream.put("s0", f"a{number}".encode())
    world.stream.open("left", "s0")
    world.stream.put("left", b"a child")

    world.step()
    world.step()
    assert all(row.shard == "s0" for row in world.bronze.rows)
    world.land_all()
    world.check()
    assert [row.shard for row in world.bronze.rows] == ["s0"] * 5 + ["left"]


def test_a_throttled_shard_waits_longer_each_time() -> None:
    stream, seconds = FakeStream(failures=[Throttled("")] * 3), [0.0]
    reader = ShardReader(stream, ShardPlace(0, "s0"), lambda: seconds[0], lambda: 0)

    waits = []
    for _ in range(4):
        reader.fetch()
        before = seconds[0]
        while not reader.is_due:
            seconds[0] += 0.05
        waits.append(seconds[0] - before)
    expected = [FIRST_WAIT_SECONDS, 2 * FIRST_WAIT_SECONDS, 4 * FIRST_WAIT_SECONDS, SECONDS_BETWEEN_READS]
    assert waits == pytest.approx(expected, abs=0.06)


def test_records_that_the_stream_has_deleted_during_a_pause_are_told() -> None:
    world = World()
    world.stream.put("s0", b"a read")
    world.land_all()
    world.stream.put("s0", b"a lost")
    world.stream.put("s0", b"a kept")
    world.stream.shards_by_id["s0"].trimmed = 2
    world.stream.now_ms += 25 * HOUR_MS
    world.restart()

    for _ in range(2):
        with pytest.raises(RecordsLost, match=r"no record 1.* in s0 any more; the stream keeps 24 hours"):
            world.step()
        # The tables report the loss, so their topics have to be known.
        assert world.lander.places.offsets == {"topic a": {0: 1}}
    world.allows_gaps = True
    world.restart()
    world.land_all()
    assert [row.record.data for row in world.bronze.rows] == [b"a read", b"a kept"]


@pytest.mark.parametrize("trimmed", [0, 1])
def test_a_long_pause_in_which_nothing_was_deleted_is_no_loss(trimmed: int) -> None:
    """The last record that was read can be gone, too: what counts is when the app last looked."""
    world = World()
    world.stream.put("s0", b"a read")
    world.land_all()
    if trimmed:
        for _ in range(4):
            world.seconds += 1_000
            world.stream.now_ms += 8 * HOUR_MS
            world.step()
    else:
        world.stream.now_ms += 48 * HOUR_MS
    world.stream.shards_by_id["s0"].trimmed = trimmed
    world.restart()
    world.stream.put("s0", b"a later")

    world.land_all()
    assert [row.record.data for row in world.bronze.rows] == [b"a read", b"a later"]


def test_a_stream_of_the_same_name_is_told_and_never_taken_for_the_old_one() -> None:
    world = World()
    world.stream.put("s0", b"a old")
    world.land_all()
    world.stream = FakeStream(created="2026-02-02", now_ms=world.stream.now_ms)
    world.stream.put("s0", b"a new")
    world.restart()

    with pytest.raises(RecordsLost, match="created at 2026-02-02"):
        world.step()
    world.allows_gaps = True
    world.restart()
    world.land_all()
    assert [(row.partition, row.record.data) for row in world.bronze.rows] == [(0, b"a old"), (1, b"a new")]


def test_a_shard_that_vanished_before_its_end_is_told() -> None:
    world = World()
    world.stream.put("s0", b"a")
    world.land_all()
    del world.stream.shards_by_id["s0"]
    world.stream.open("later")
    world.restart()

    with pytest.raises(RecordsLost, match="no shard s0"):
        world.step()


def test_a_stream_that_nobody_may_read_is_told_at_each_step() -> None:
    world = World()
    problem = StreamUnreadable(what="no", where="here")
    world.stream.failures = [problem, problem]
    for _ in range(2):
        with pytest.raises(StreamUnreadable):
            world.step()
    world.stream.put("s0", b"a")
    world.land_all()
    world.check()


def test_a_stream_without_records_commits_its_places_now_and_then() -> None:
    world = World()
    world.land_all()
    assert world.bronze.commits == 0
    world.seconds += 1_000
    world.step()
    assert world.bronze.commits == 1
    assert world.bronze.rows == []
    world.step()
    assert world.bronze.commits == 1


def test_places_survive_as_text() -> None:
    places = StreamPlaces(
        "2026", (ShardPlace(0, "a", "1" * 56, is_over=True, until_ms=5), ShardPlace(3, "b")), {"t": {0: 7}}, 4
    )
    assert StreamPlaces.from_json(places.to_json()) == places
    assert readable(places, (Shard("a"), Shard("b", ("a",)))) == (places.shards[1],)
    assert readable(replace(places, shards=places.shards[1:]), (Shard("a"), Shard("b", ("a",)))) == ()


@settings(max_examples=100)
@given(
    st.integers(0, 5),
    st.lists(st.sampled_from(["step", "restart", "before", "after", "throttle", "fail", "put"]), max_size=20),
    st.integers(1, 400),
)
def test_every_item_lands_once_besides_its_changes(items: int, events: list[str], bytes_at_once: int) -> None:
    tables = FakeTables([f"item {number}" for number in range(items)])
    world = World(tables=tables)
    with mock.patch.object(item_tables, "BYTES_AT_ONCE", bytes_at_once):
        for event in events:
            match event:
                case "restart":
                    world.restart()
                case "before" | "after":
                    world.bronze.crashes.append(event)
                case "throttle":
                    tables.failures.append(Throttled("slow down"))
                case "fail":
                    tables.failures.append(OSError("no network"))
                case "put":
                    world.stream.put("s0", b"a change")
            _survive(world)
        world.bronze.crashes.clear()
        tables.failures.clear()
        world.land_all()
    landed = [row for row in world.bronze.rows if row.topic == "items"]
    changes = [read_record(row.record.data) for row in landed]
    assert [change.keys["id"]["S"] for change in changes] == tables.items
    assert [row.offset for row in landed] == list(range(items))
    assert all(change.image is not None and change.image["raw"] == {"B": "AA=="} for change in changes)
    assert sum(row.topic == "topic a" for row in world.bronze.rows) == events.count("put")


@pytest.mark.parametrize("reads_others", [False, True])
def test_items_that_are_not_to_be_read_any_more_leave_no_place_and_do_not_hold_up_the_end(
    reads_others: bool,
) -> None:
    world = World(tables=FakeTables(["first", "second"]))
    with mock.patch.object(item_tables, "BYTES_AT_ONCE", 1):
        world.step()
    assert world.lander.reads_items_of("a")
    assert world.bronze.places.place("items of a") == ShardPlace(1, "items of a", "1")

    # The table was dropped, or the lake file reads no items any more.
    world.tables = mock.Mock(names=lambda: ()) if reads_others else None
    world.restart()
    world.land_all()
    assert not world.lander.reads_items_of("a")
    assert world.bronze.places.place("items of a") is None

    world.tables = FakeTables(["first", "second"])
    world.restart()
    world.land_all()
    assert [row.offset for row in world.bronze.rows if row.shard == "items of a"] == [0, 0, 1]
    assert len({row.partition for row in world.bronze.rows}) == 2


def test_after_lost_records_all_items_are_read_again() -> None:
    world = World(tables=FakeTables(["one", "two"]), allows_gaps=True)
    world.stream.put("s0", b"a read")
    world.land_all()
    world.stream.put("s0", b"a lost")
    world.stream.shards_by_id["s0"].trimmed = 2
    world.stream.now_ms += 25 * HOUR_MS
    world.restart()
    world.land_all()

    landed = [row for row in world.bronze.rows if row.topic == "items"]
    assert len(landed) == 4
    assert len({row.partition for row in landed}) == 2
    world.restart()
    world.land_all()
    assert sum(row.topic == "items" for row in world.bronze.rows) == 4
