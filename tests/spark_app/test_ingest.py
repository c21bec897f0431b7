"""Each table continues by itself: one that fails neither stops the others nor hides behind them."""

from __future__ import annotations

import io
import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_app.reports import Committed, ProgressWriter
from spark_app.run.loop import Ingest
from spark_app.run.metrics import MetricsSender, TableState
from spark_app.run.new_tables import NewTables
from spark_app.run.outcome import Outcome
from spark_app.run.pace import Pace
from spark_app.run.pause_files import PauseStore
from spark_app.run.table_runs import TableRuns
from spark_app.sources.event import OffsetRange, TopicExtent, ranges_from
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import Read, Request
from tributary.contract.remedies import RebuildTable
from tributary.contract.source_look import SourceLook
from tributary.contract.table_name import TableName

FAST = Pace(
    poll_seconds=0.001,
    idle_poll_seconds=0.001,
    discovery_seconds=0.001,
    events_per_load=4,
    events_per_commit=4,
    events_per_turn=4,
    first_retry_seconds=0.001,
)


@dataclass
class FakeTable:
    """Stands for a table whose commits take no time.

    Its next attempts raise the `failures`, one each. `sizes` are the sizes of its commits, and
    `while_applying` runs during a commit."""

    name: str
    failures: list[Exception] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    while_applying: Callable[[], None] = lambda: None
    while_serving: Callable[[], None] = lambda: None
    is_busy: bool = False
    position: int = 0
    begun_at: Mapping[int, int] | None = None
    attempts: int = 0
    forgotten: int = 0
    is_recovered: bool = False
    while_recovering: Callable[[], None] = lambda: None
    service_is_due: bool = False
    parts_of_services: int = 1
    service_failures: list[Exception] = field(default_factory=list)

    @property
    def quarantine_path(self) -> str:
        return f"quarantine/{self.name}"

    def begin_at(self, positions: Mapping[int, int]) -> None:
        self.begun_at, self.position = positions, positions[0]

    @property
    def state(self) -> object:
        return SimpleNamespace(has_table=False)

    @property
    def columns(self) -> object | None:
        return self.sizes or None

    def recover(self) -> None:
        self.while_recovering()
        self.is_recovered = True

    def pending(self, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
        if extent.problem is not None:
            raise extent.problem
        return ranges_from({0: self.position}, extent, limit)

    def behind(self, extent: TopicExtent) -> int:
        return max(0, extent.end.get(0, 0) - self.position)

    def apply(self, ranges: tuple[OffsetRange, ...]) -> Committed:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.while_applying()
        self.sizes.append(ranges[0].length)
        self.position = ranges[0].until
        return Committed(self.name, "1", "now", ranges[0].length, 0, 0, 0, {0: self.position}, None, 0.0)

    def is_service_due(self, *, is_idle: bool, is_apart: bool = False) -> bool:
        return self.service_is_due and (is_idle or (is_apart and self.is_busy))

    def maintain(self) -> None:
        self.while_serving()
        self.parts_of_services -= 1
        self.service_is_due = self.parts_of_services > 0
        if self.service_failures:
            self.service_is_due = True
            raise self.service_failures.pop(0)

    def forget(self) -> None:
        self.forgotten += 1
        self.is_recovered = False


@dataclass
class FakeSource:
    keeps_headers: ClassVar[bool] = True

    ends: dict[str, int]
    asked: list[frozenset[str]] = field(default_factory=list)
    after_extents: Callable[[], None] = lambda: None
    problems: dict[str, TributaryError] = field(default_factory=dict)

    def topics(self) -> frozenset[str]:
        return frozenset(self.ends)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        self.asked.append(topics)
        found = {topic: TopicExtent({0: 0}, {0: self.ends[topic]}) for topic in topics}
        found |= {t: TopicExtent({}, {}, problem=one) for t, one in self.problems.items() if t in topics}
        self.after_extents()
        return found

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        raise AssertionError((topic, ranges))


@dataclass
class FakeOutcomes:
    """Stands for a store whose next changes raise the `failures`, one each."""

    by_folder: dict[str, Outcome] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    after_write: Callable[[], None] = lambda: None

    def read(self, folder: str) -> Outcome | None:
        return self.by_folder.get(folder)

    def write(self, folder: str, outcome: Outcome) -> None:
        self._fail()
        self.by_folder[folder] = outcome
        self.after_write()

    def clear(self, folder: str) -> None:
        self._fail()
        del self.by_folder[folder]

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


class NoSpark:
    class sparkContext:  # noqa: N801
        @staticmethod
        def setLocalProperty(name: str, value: str) -> None:  # noqa: N802
            pass


def ingest(
    source: FakeSource,
    tables: dict[str, FakeTable],
    follow: bool = False,
    outcomes: FakeOutcomes | None = None,
    pauses: PauseStore | None = None,
) -> tuple[Ingest, io.StringIO]:
    out = io.StringIO()
    runs = TableRuns(
        source=source,
        table_of=lambda topic: cast("TableIngest | None", tables.get(topic)),
        progress=ProgressWriter(out),
        outcomes=outcomes or FakeOutcomes(),
        follow=follow,
        pauses=pauses,
    )
    return Ingest(cast(SparkSession, NoSpark()), runs, pace=FAST), out


def reports(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_run_once_ends_when_every_table_is_where_its_topic_ended_at_the_start() -> None:
    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    source = FakeSource({"a": 10, "b": 3, "not a table": 5})
    source.after_extents = lambda: source.ends.update(a=source.ends["a"] + 1)
    run, out = ingest(source, tables)

    assert run.run()
    assert tables["b"].position == 3
    assert 10 <= tables["a"].position <= 12
    assert reports(out)[-1]["tables"] == {"a": "ok", "b": "ok"}


@pytest.mark.parametrize("looks", [1, 100])
def test_a_topic_whose_end_cannot_be_told_blocks_its_table_alone_even_if_it_can_be_told_later(
    looks: int,
) -> None:
    """A table without a target would end as if it had applied everything."""
    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    source = FakeSource({"a": 4, "b": 8}, problems={"a": TributaryError("a file is damaged", where="a+0+0")})

    def mend() -> None:
        if len(source.asked) >= looks:
            source.problems.clear()

    source.after_extents = mend
    run, out = ingest(source, tables)

    assert not run.run()
    assert (tables["a"].position, tables["b"].position) == (0, 8)
    (blocked,) = (one for one in reports(out) if one["event"] == "blocked")
    assert (blocked["table"], blocked["error"]) == ("a", "a+0+0: a file is damaged.")


@dataclass
class FakePauses:
    """Tells one answer after the other, and the last one from then on."""

    answers: Sequence[frozenset[str] | Exception]
    before: Callable[[], None] = lambda: None
    asked: int = 0

    def read_paused(self) -> frozenset[str]:
        self.before()
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_paused_table_stays_as_it_is_and_the_others_go_on() -> None:
    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    run, out = ingest(FakeSource({"a": 4, "b": 8}), tables, pauses=FakePauses([frozenset({"a"})]))

    assert run.run()
    assert (tables["a"].position, tables["a"].attempts, tables["b"].position) == (0, 0, 8)
    assert {"event": "paused", "table": "a"} in reports(out)


def test_a_resumed_table_continues_where_it_was_while_the_run_follows() -> None:
    table, source = FakeTable("a"), FakeSource({"a": 4})
    paused = frozenset({"a"})
    answers: list[frozenset[str] | Exception]
    answers = [frozenset(), paused, OSError("S3 is away"), paused, paused, frozenset(), frozenset()]
    positions: list[int] = []

    def look() -> None:
        positions.append(table.position)
        if len(positions) == 2:
            source.ends["a"] = 9
        if table.position == 9:
            run.stop.set()

    run, out = ingest(source, {"a": table}, follow=True, pauses=FakePauses(answers, look))
    run.pace = replace(FAST, discovery_seconds=0.1)

    assert run.run()
    assert positions[:6] == [0, 4, 4, 4, 4, 4]
    assert table.position == 9
    events = [report["event"] for report in reports(out)]
    assert [event for event in events if event in ("paused", "resumed")] == ["paused", "resumed"]


@dataclass
class FakeOrphans:
    removed: frozenset[str]

    def read_removed(self) -> frozenset[str]:
        return self.removed


def test_a_run_makes_no_table_of_the_events_of_a_removed_one_until_that_is_forgotten() -> None:
    removed, other = FakeTable("removed"), FakeTable("other")
    tables = {"removed": removed, "other": other}
    orphans = FakeOrphans(frozenset({"removed"}))
    run, out = ingest(FakeSource({"removed": 4, "other": 5}), tables)
    run.tables.orphans = orphans
    assert run.run()
    assert (removed.position, other.position) == (0, 5)
    assert "removed" not in out.getvalue()

    orphans.removed = frozenset()
    again, _ = ingest(FakeSource({"removed": 4, "other": 5}), tables)
    again.tables.orphans = orphans
    assert again.run()
    assert removed.position == 4


@dataclass
class FakeLooks:
    looks: Mapping[str, SourceLook]

    def read_looks(self) -> Mapping[str, SourceLook]:
        return self.looks


@dataclass
class FakeSnapshots:
    ended: Mapping[str, Read] = field(default_factory=dict)

    def read_ended(self) -> Mapping[str, Read]:
        return self.ended


def test_a_table_that_was_left_out_is_made_once_it_is_read_and_begins_there() -> None:
    fit, unfit = "shop.public.fit", "shop.public.unfit"
    known = frozenset({fit, unfit})
    looks = FakeLooks({"shop": SourceLook("shop", known, held_back=frozenset({unfit}))})
    snapshots = FakeSnapshots()

    def made() -> dict[str, FakeTable]:
        tables = {name: FakeTable(name) for name in known}
        run, _ = ingest(FakeSource({fit: 4, unfit: 9}), tables)
        run.tables.new, run.tables.snapshots = NewTables(looks), snapshots
        assert run.run()
        return tables

    assert {name: table.position for name, table in made().items()} == {fit: 4, unfit: 0}
    request = Request("one", TableName.parse(unfit), ("it was left out until now",), 0)
    snapshots.ended = {unfit: Read(request, None, {0: 7}, {0: 9})}
    found = made()[unfit]
    assert (found.begun_at, found.position) == ({0: 7}, 9)
    assert sum(found.sizes) == 2


def test_a_table_that_is_found_between_two_looks_at_all_begins_where_it_was_read() -> None:
    late = "shop.public.late"
    request = Request("one", TableName.parse(late), ("it was left out until now",), 0)
    source, tables = FakeSource({"a": 4}), {name: FakeTable(name) for name in ("a", late)}
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, idle_poll_seconds=99)
    run.tables.snapshots = FakeSnapshots({late: Read(request, None, {0: 7}, {0: 9})})

    def then() -> None:
        if tables["a"].position == 4:
            source.ends[late] = 9
        if tables[late].position == 9:
            run.stop.set()

    source.after_extents = then
    assert run.run()
    assert (tables[late].begun_at, tables[late].sizes) == ({0: 7}, [2])


def test_a_run_does_not_begin_as_long_as_nobody_knows_which_tables_are_paused() -> None:
    table = FakeTable("a")
    run, _ = ingest(FakeSource({"a": 4}), {"a": table}, pauses=FakePauses([OSError("S3 is away")]))
    with pytest.raises(OSError, match="S3 is away"):
        run.run()
    assert table.position == 0


def test_a_passing_failure_is_tried_again_from_what_the_table_holds() -> None:
    table = FakeTable("a", failures=[OSError("S3 is away"), OSError("still")])
    run, out = ingest(FakeSource({"a": 4}), {"a": table})

    assert run.run()
    assert (table.position, table.attempts, table.forgotten) == (4, 3, 2)
    assert [r["attempt"] for r in reports(out) if r["event"] == "failed"] == [1, 2]


def test_a_table_that_fails_for_good_is_named_while_the_others_reach_their_end() -> None:
    tables = {"a": FakeTable("a", failures=[OSError("gone")] * 99), "b": FakeTable("b")}
    run, out = ingest(FakeSource({"a": 4, "b": 8}), tables)

    assert not run.run()
    assert tables["b"].position == 8
    assert tables["a"].attempts == FAST.attempts
    assert reports(out)[-1]["tables"] == {"a": "OSError: gone", "b": "ok"}


def test_a_table_that_waits_for_a_person_is_not_tried_again() -> None:
    blocked = FakeTable("a", failures=[TributaryError("a column changed its type", remedy="Change it back.")])
    run, out = ingest(FakeSource({"a": 4, "b": 4}), {"a": blocked, "b": FakeTable("b")})

    assert not run.run()
    assert blocked.attempts == 1
    (report,) = [r for r in reports(out) if r["event"] == "blocked"]
    assert report == {
        "event": "blocked",
        "table": "a",
        "error": "a column changed its type.",
        "remedies": [{"kind": "advice", "text": "Change it back."}],
        "is_lacking_classes": False,
        "is_unchanged": False,
    }


def test_a_run_that_follows_finds_new_topics_and_continues_until_it_is_stopped() -> None:
    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    source = FakeSource({"a": 4})
    run, out = ingest(source, tables, follow=True)

    def then() -> None:
        if tables["a"].position == 4:
            source.ends["b"] = 6
        if tables["b"].position == 6:
            run.stop.set()

    source.after_extents = then
    assert run.run()
    assert (tables["a"].position, tables["b"].position) == (4, 6)
    assert [r["tables"] for r in reports(out) if r["event"] == "started"] == [["a"], ["b"]]


def test_tables_that_always_have_events_are_given_as_many_turns_each() -> None:
    tables = {name: FakeTable(name) for name in "abc"}
    source = FakeSource(dict.fromkeys(tables, 1000))
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=1)

    def then() -> None:
        if sum(table.attempts for table in tables.values()) == 30:
            run.stop.set()

    for table in tables.values():
        table.while_applying = then
    assert run.run()
    attempts = [table.attempts for table in tables.values()]
    assert max(attempts) - min(attempts) <= 1


def test_a_live_table_commits_before_other_tables_have_loaded_or_recovered() -> None:
    loading = {f"new {number}": FakeTable(f"new {number}") for number in range(20)}
    tables = {**loading, "live": FakeTable("live", is_recovered=True, sizes=[1])}
    source = FakeSource({**dict.fromkeys(loading, 8), "live": 0})
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=2, live_seconds=99.0)
    turns_of_others = 0

    def load() -> None:
        nonlocal turns_of_others
        turns_of_others += 1
        time.sleep(0.01)
        source.ends["live"] += 1

    for table in loading.values():
        table.while_recovering = table.while_applying = load
    waited: list[int] = []

    def commit() -> None:
        waited.append(turns_of_others)
        if all(table.position == 8 for table in loading.values()):
            run.stop.set()

    tables["live"].while_applying = commit
    assert run.run()
    # The first turns may begin before its topic is seen to move.
    assert all(later - earlier <= 3 for earlier, later in pairwise(waited[1:]))


def test_a_table_whose_topic_gets_events_is_the_next_to_recover() -> None:
    tables = {f"idle {number:02}": FakeTable(f"idle {number:02}") for number in range(30)}
    source = FakeSource(dict.fromkeys(tables, 0))
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=1, discovery_seconds=99.0)
    recovered: list[str] = []

    def recover(name: str) -> None:
        recovered.append(name)
        if name == "idle 03":
            source.ends["idle 27"] = 4
        time.sleep(0.005)

    for name, table in tables.items():
        table.while_recovering = partial(recover, name)
    tables["idle 27"].while_applying = run.stop.set
    assert run.run()
    assert "idle 27" in recovered[4:6]


@dataclass
class DatedSource(FakeSource):
    """A source whose topics got their newest event at these times, in milliseconds."""

    times: dict[str, int] = field(default_factory=dict)

    def newest(self, topics: frozenset[str]) -> Mapping[str, int]:
        return {topic: time for topic, time in self.times.items() if topic in topics}


def test_after_a_start_the_tables_with_the_newest_events_recover_first() -> None:
    tables = {name: FakeTable(name) for name in ("a", "b", "c", "never")}
    source = DatedSource(dict.fromkeys(tables, 0), times={"a": 1, "b": 3, "c": 2})
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=1, discovery_seconds=99.0)
    recovered: list[str] = []

    def recover(name: str) -> None:
        recovered.append(name)
        if len(recovered) == len(tables):
            run.stop.set()

    for name, table in tables.items():
        table.while_recovering = partial(recover, name)
    assert run.run()
    assert recovered == ["b", "c", "a", "never"]


def test_a_source_that_cannot_tell_how_new_its_events_are_is_read_all_the_same() -> None:
    class OldSource(FakeSource):
        def newest(self, _: frozenset[str]) -> Mapping[str, int]:
            raise OSError("the broker does not know this request")

    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    run, _ = ingest(OldSource({"a": 1, "b": 2}), tables)
    assert run.run()
    assert (tables["a"].position, tables["b"].position) == (1, 2)


def test_the_source_is_rarely_asked_for_topics_without_new_events() -> None:
    tables = {name: FakeTable(name) for name in ("live", "idle", "behind")}
    source = FakeSource({"live": 0, "idle": 0, "behind": 40})
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, idle_poll_seconds=0.05, discovery_seconds=99.0)
    tables["live"].while_applying = lambda: run.stop.set() if tables["live"].position >= 60 else None

    def more() -> None:
        source.ends["live"] += tables["live"].position == source.ends["live"]

    source.after_extents = more
    began = time.monotonic()
    assert run.run()
    looks_at_all = 1 + (time.monotonic() - began) / 0.05
    # The table is looked at once more after it has recovered.
    assert sum("idle" in asked for asked in source.asked) <= looks_at_all + 1
    assert sum("live" in asked for asked in source.asked) >= 60
    assert tables["behind"].position == 40


def test_what_a_table_reads_is_decided_when_its_turn_begins() -> None:
    tables = {"a": FakeTable("a"), "b": FakeTable("b")}
    source = FakeSource({"a": 2, "b": 1})
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=1)
    tables["a"].while_applying = lambda: source.ends.update(b=3)
    tables["b"].while_applying = run.stop.set

    assert run.run()
    assert tables["b"].sizes == [3]


def test_a_table_commits_more_at_once_if_no_other_has_only_a_little_to_commit() -> None:
    tables = {"busy": FakeTable("busy"), "small": FakeTable("small"), "large": FakeTable("large")}
    source = FakeSource({"busy": 40, "small": 4, "large": 5})
    run, _ = ingest(source, tables)
    run.pace = replace(FAST, parallel=1, events_per_turn=4, events_per_commit=20)

    assert run.run()
    assert tables["small"].sizes == [4]
    assert tables["busy"].sizes[0] == 4
    assert max(tables["busy"].sizes) == 20


def test_the_first_commit_of_a_table_may_be_larger() -> None:
    table = FakeTable("a")
    run, _ = ingest(FakeSource({"a": 40}), {"a": table})
    run.pace = replace(FAST, events_per_load=30, events_per_commit=8)

    assert run.run()
    assert table.sizes == [30, 8, 2]


def test_busy_tables_have_their_services_one_after_the_other() -> None:
    tables = {name: FakeTable(name, service_is_due=True, is_busy=True) for name in "abc"}
    source = FakeSource(dict.fromkeys(tables, 10_000))
    run, _ = ingest(source, tables, follow=True)
    run.pace = replace(FAST, parallel=3, seconds_between_services=0.05)
    served: list[tuple[float, str]] = []
    for table in tables.values():
        table.while_serving = partial(lambda name: served.append((time.monotonic(), name)), table.name)
        table.while_applying = lambda: run.stop.set() if len(served) == 3 else None

    assert run.run()
    assert sorted(name for _, name in served) == ["a", "b", "c"]
    assert all(later - earlier > 0.04 for (earlier, _), (later, _) in pairwise(served))
    assert all(table.attempts > 1 for table in tables.values())


def test_a_run_that_follows_outlasts_more_failures_than_a_run_once() -> None:
    table = FakeTable("a", failures=[OSError("away")] * 5)
    run, _ = ingest(FakeSource({"a": 4}), {"a": table}, follow=True)
    run.pace = replace(FAST, longest_retry_seconds=0.001)
    cast(FakeSource, run.tables.source).after_extents = lambda: (
        run.stop.set() if table.position == 4 else None
    )

    assert run.run()
    assert table.attempts == 6


def test_a_source_that_is_away_for_a_moment_ends_no_run() -> None:
    table, failures = FakeTable("a"), [OSError("no broker"), OSError("no broker")]
    source = FakeSource({"a": 4})

    def fail_at_first() -> None:
        if table.is_recovered and failures:
            raise failures.pop()

    run, out = ingest(source, {"a": table}, follow=True)
    run.pace = replace(FAST, discovery_seconds=99)
    source.after_extents = lambda: run.stop.set() if table.position == 4 else fail_at_first()

    assert run.run()
    assert [r["error"] for r in reports(out) if r["event"] == "failed"] == ["OSError: no broker"] * 2
    assert table.forgotten == 0, "nothing was committed, so the table need not be read again"


def test_a_run_once_ends_after_the_services_that_waited_until_the_table_was_idle() -> None:
    table = FakeTable("a", service_is_due=True, service_failures=[OSError("S3 is away")])
    run, out = ingest(FakeSource({"a": 8}), {"a": table})

    assert run.run()
    assert (table.position, table.attempts, table.service_is_due) == (8, 2, False)
    events = [report["event"] for report in reports(out)]
    assert events == ["started", "commit", "commit", "caught_up", "failed", "caught_up", "stopped"]


def test_a_run_once_ends_when_all_parts_of_a_service_are_done() -> None:
    tables = {name: FakeTable(name, service_is_due=True, parts_of_services=3) for name in "ab"}
    run, _ = ingest(FakeSource(dict.fromkeys(tables, 4)), tables)

    assert run.run()
    assert {table.parts_of_services for table in tables.values()} == {0}


def test_the_reason_for_a_blocked_table_stays_until_a_run_finds_it_healthy() -> None:
    conflict = TributaryError("a column changed its type", where="column n", remedy=RebuildTable())
    outcomes, source = FakeOutcomes(), FakeSource({"a": 4, "b": 4})
    well = FakeTable("b")

    run, _ = ingest(source, {"a": FakeTable("a", failures=[conflict]), "b": well}, outcomes=outcomes)
    assert not run.run()
    (first,) = outcomes.by_folder.items()
    assert first[0] == "quarantine/a"
    assert (first[1].state, first[1].reason, first[1].remedies) == (
        "blocked",
        "column n: a column changed its type.",
        (RebuildTable("a"),),
    )

    run, _ = ingest(source, {"a": FakeTable("a", failures=[conflict]), "b": well}, outcomes=outcomes)
    assert not run.run()
    assert outcomes.by_folder == {"quarantine/a": first[1]}

    run, _ = ingest(source, {"a": FakeTable("a"), "b": well}, outcomes=outcomes)
    assert run.run()
    assert outcomes.by_folder == {}


def test_a_table_with_nothing_more_to_read_is_healthy_too() -> None:
    outcomes = FakeOutcomes({"quarantine/a": Outcome("retrying", "2026-01-01T00:00:00+00:00", "S3 is away")})
    run, _ = ingest(FakeSource({"a": 4}), {"a": FakeTable("a", position=4)}, outcomes=outcomes)

    assert run.run()
    assert outcomes.by_folder == {}


def test_an_outcome_that_cannot_be_written_is_written_later() -> None:
    outcomes = FakeOutcomes(failures=[OSError("S3 is away")] * 2)
    run, _ = ingest(FakeSource({"a": 4}), {"a": FakeTable("a", [TributaryError("no")])}, True, outcomes)
    outcomes.after_write = run.stop.set

    assert not run.run()
    assert outcomes.by_folder["quarantine/a"].what == "no"


def test_a_signal_that_comes_at_any_moment_ends_a_run() -> None:
    source = FakeSource({"a": 4})
    run, _ = ingest(source, {"a": FakeTable("a")}, follow=True)
    previous = signal.signal(signal.SIGALRM, lambda *_: run.stop.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert run.run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Told:
    """Stands for the sender of metrics."""

    def __init__(self) -> None:
        self.states: list[TableState] = []

    def offer(self, observed: object) -> None:
        if isinstance(observed, TableState):
            self.states.append(observed)


def test_a_run_reports_the_lag_of_each_table_and_which_ones_are_blocked() -> None:
    tables = {"a": FakeTable("a"), "b": FakeTable("b", failures=[TributaryError("a person has to decide")])}
    run, _ = ingest(FakeSource({"a": 100, "b": 10}), tables, follow=True)
    told = Told()
    run.metrics, run.pace = cast(MetricsSender, told), replace(FAST, metrics_seconds=0.0)

    def until() -> None:
        blocked = [state for state in told.states if state.is_blocked]
        if tables["a"].position == 100 and blocked and told.states[-2].lag == 0:
            run.stop.set()

    cast(FakeSource, run.tables.source).after_extents = until
    run.run()
    of_a = [state for state in told.states if state.table == "a"]
    assert max(state.lag for state in of_a) > 90
    assert (of_a[-1].lag, of_a[-1].stuck_seconds, of_a[-1].is_blocked) == (0, 0.0, False)
    last_of_b = [state for state in told.states if state.table == "b"][-1]
    assert last_of_b.is_blocked
    assert last_of_b.stuck_seconds > 0
