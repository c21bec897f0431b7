"""The loop of a run: find tables, give them turns, and handle their failures."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.acceleration.missing_member import MissingMember, missing_member
from spark_app.catalog.sync import CatalogSync
from spark_app.reports import (
    Blocked,
    CaughtUp,
    Failed,
    Paused,
    ProgressWriter,
    Resumed,
    Started,
    Stopped,
)
from spark_app.run.metrics import MetricsSender
from spark_app.run.orphan_files import OrphanStore
from spark_app.run.outcome import OutcomeStore
from spark_app.run.pause_files import PauseStore
from spark_app.run.snapshot_files import SnapshotStore
from spark_app.run.table_run import TableRun
from spark_app.run.turns import Queue, SharedTurns
from spark_app.sources.event import EventSource, OffsetRange
from spark_app.table.snapshot_end import end_snapshot
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import Read
from tributary.contract.remedies import remedies_for_table


@dataclass(frozen=True)
class Pace:
    """How often to poll and how many events to take at once.

    poll_seconds       how often to look for new events of live tables, and of those with events to commit
    idle_poll_seconds  how often to look for new events of all tables. A look costs CPU time for each table.
    live_seconds       how long a table is live after its last new event
    parallel           how many tables work at the same time; `run.turns` says which. Few are better than
                       many: with all tables at once, each would be as slow as the whole round.
    events_per_commit  the most events in a commit. Larger commits are faster per event.
    events_per_turn    the most events in a commit while another table has no more than this to commit
    events_per_load    the most events in a table's first commit, which is faster per event than later ones
    """

    poll_seconds: float = 0.1
    idle_poll_seconds: float = 1.0
    live_seconds: float = 60.0
    discovery_seconds: float = 5.0
    metrics_seconds: float = 60.0
    seconds_between_services: float = 30.0
    events_per_load: int = 5_000_000
    events_per_commit: int = 1_000_000
    events_per_turn: int = 50_000
    parallel: int = 2
    attempts: int = 3
    first_retry_seconds: float = 1.0
    longest_retry_seconds: float = 30.0


class StopRequest:
    """A request to end the run, which a signal handler may set.

    A `threading.Event` could deadlock: `set` takes a lock that the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


PASSING_FAILURES = (Py4JError, PySparkException, OSError)
"""The errors that Kafka, S3 or Spark raise when they are temporarily unavailable, and in other cases."""


@dataclass
class Ingest:
    """Bring the tables up to date with their source and, with `follow`, keep them up to date.

    table_of   returns a topic's table, or None if the topic does not belong to the lake
    snapshots  has the online snapshots whose ends are to be applied, if given
    pauses     says which tables are paused, if given
    orphans    says of which topics the tables were removed, if given
    catalog    shows the tables to query engines, if given
    metrics    reports the tables' state to CloudWatch, if given
    """

    spark: SparkSession
    source: EventSource
    table_of: Callable[[str], TableIngest | None]
    progress: ProgressWriter
    outcomes: OutcomeStore
    follow: bool
    snapshots: SnapshotStore | None = None
    pauses: PauseStore | None = None
    orphans: OrphanStore | None = None
    catalog: CatalogSync | None = None
    metrics: MetricsSender | None = None
    pace: Pace = Pace()
    stop: StopRequest = field(default_factory=StopRequest)
    _runs: dict[str, TableRun] = field(default_factory=dict)
    _last_service_at: float = 0.0
    _next_look_at_all: float = 0.0
    _knows_pauses: bool = False

    def run(self) -> bool:
        """Run to the end. Return whether every table is healthy and its catalog entry is up to date.

        A table's failure does not stop the others.
        """
        next_discovery = next_metrics = 0.0
        turns = SharedTurns(self.pace.parallel)
        with ThreadPoolExecutor(self.pace.parallel, thread_name_prefix="table") as pool:
            while not self.stop.is_set():
                if time.monotonic() >= next_discovery:
                    self._discover_again()
                    self._look_for_pauses()
                    self._look_for_snapshots()
                    self._record_outcomes()
                    next_discovery = time.monotonic() + self.pace.discovery_seconds
                self._collect_finished(turns)
                if not self.follow and all(run.is_over for run in self._runs.values()):
                    break
                self._give_turns(pool, turns)
                if self.metrics is not None and time.monotonic() >= next_metrics:
                    self._measure(self.metrics)
                    next_metrics = time.monotonic() + self.pace.metrics_seconds
                if self.catalog is not None:
                    self.catalog.step()
                self._wait_for_work()
        self._collect_finished(turns)
        self._record_outcomes()
        not_shown = {} if self.catalog is None else self.catalog.finish()
        outcomes = {run.table.name: run.error or "ok" for run in self._runs.values()}
        self.progress.write(Stopped(outcomes, not_shown))
        return not not_shown and all(run.error is None for run in self._runs.values())

    def _discover_again(self) -> None:
        """Find new topics. An unavailable source is an error at the start; later, the known tables retry."""
        try:
            self._discover()
        except PASSING_FAILURES as error:
            if not self._runs:
                raise
            for run in self._runs.values():
                if run.working is None and not run.is_over:
                    self._retry_later(run, error)

    def _discover(self) -> None:
        """Add a table for each new topic.

        Without `follow`, a run takes only the topics at its start, up to their ends at that time.
        """
        if self._runs and not self.follow:
            return
        found = {
            topic: table
            for topic in self.source.topics() - self._runs.keys()
            if (table := self.table_of(topic))
        }
        if found and self.orphans is not None:
            removed = self.orphans.read_removed()
            found = {topic: table for topic, table in found.items() if topic not in removed}
        extents = self.source.extents(frozenset(found)) if found and not self.follow else {}
        for topic, table in sorted(found.items()):
            self._runs[topic] = TableRun(table, target=None if self.follow else extents[topic].end)
        if found:
            self.progress.write(Started(tuple(sorted(table.name for table in found.values()))))

    def _look_for_snapshots(self) -> None:
        """Find the online snapshots that have ended. The next look reads records that cannot be read now."""
        if self.snapshots is None:
            return
        try:
            ended = self.snapshots.read_ended()
        except PASSING_FAILURES as error:
            print(f"Cannot read the records of online snapshots: {error}", file=sys.stderr)
            return
        for run in self._runs.values():
            run.snapshot = ended.get(run.table.name)

    def _look_for_pauses(self) -> None:
        """Find the tables that are paused. If they cannot be read, that is an error only at the start."""
        if self.pauses is None:
            return
        try:
            paused = self.pauses.read_paused()
        except PASSING_FAILURES as error:
            if not self._knows_pauses:
                raise
            print(f"Cannot read which tables are paused: {error}", file=sys.stderr)
            return
        self._knows_pauses = True
        for run in self._runs.values():
            was_paused, run.is_paused = run.is_paused, run.table.name in paused
            if run.is_paused and not was_paused:
                self.progress.write(Paused(run.table.name))
            elif was_paused and not run.is_paused:
                run.set_going()
                self.progress.write(Resumed(run.table.name))

    def _wait_for_work(self) -> None:
        """Wait until a table's turn ends or the next poll is due."""
        working = [run.working for run in self._runs.values() if run.working is not None]
        if working:
            wait(working, self.pace.poll_seconds, FIRST_COMPLETED)
        else:
            time.sleep(self.pace.poll_seconds)

    def _give_turns(self, pool: ThreadPoolExecutor, turns: SharedTurns) -> None:
        """Start work on waiting tables.

        A turn's events are chosen when it begins, so they include the events that came during the wait.
        """
        is_look_at_all = time.monotonic() >= self._next_look_at_all
        if is_look_at_all:
            self._next_look_at_all = time.monotonic() + self.pace.idle_poll_seconds
        waiting: dict[Queue, list[TableRun]] = {queue: [] for queue in Queue}
        for run in self._look_at_topics(all_of_them=is_look_at_all):
            queue = self._queue_of(run)
            if queue is not None:
                waiting[queue].append(run)
        in_turn = {queue: deque(sorted(runs, key=_order_in_queue)) for queue, runs in waiting.items()}
        is_any_live = any(run.is_live(self.pace.live_seconds) for run in self._runs.values())
        while True:
            queue = turns.next_queue(
                [queue for queue, runs in in_turn.items() if runs],
                [run.queue for run in self._runs.values() if run.working is not None],
                keeps_one_for_live=is_any_live,
            )
            if queue is None:
                return
            self._give_turn(pool, in_turn[queue].popleft(), queue)

    def _look_at_topics(self, *, all_of_them: bool) -> list[TableRun]:
        """Look at the topics of live tables, or of all. Return the tables that may have something to do."""
        now, live_seconds = time.monotonic(), self.pace.live_seconds
        open_runs = {topic: run for topic, run in self._runs.items() if not run.is_over}
        looked_at = {
            topic: run
            for topic, run in open_runs.items()
            if all_of_them or run.is_behind or run.is_live(live_seconds)
        }
        free = [
            run
            for topic, run in open_runs.items()
            if run.working is None
            and now >= run.not_before
            and (topic in looked_at or not run.table.is_recovered)
        ]
        if not free or not looked_at:
            return free
        try:
            # A table that works is among them: with the same topics each time, the source has less to do.
            extents = self.source.extents(frozenset(looked_at))
        except PASSING_FAILURES as error:
            for run in free:
                self._retry_later(run, error)
            return []
        for topic, run in looked_at.items():
            run.look_at(extents[topic])
        return free

    def _queue_of(self, run: TableRun) -> Queue | None:
        """Return the queue in which the table waits. None: it has nothing to do."""
        if not run.table.is_recovered:
            return Queue.CATCHING_UP
        run.measure_lag()
        if run.lag == 0:
            ranges = self._pending(run)
            if ranges is None:
                return None
            if not ranges:
                self._settle(run)
                has_more = run.ended_snapshot is not None or run.table.is_service_due(is_idle=True)
                return Queue.CATCHING_UP if has_more else None
        elif run.target is None:
            run.is_caught_up = False
        has_table = run.table.columns is not None
        return Queue.LIVE if has_table and run.lag <= self.pace.events_per_turn else Queue.CATCHING_UP

    def _give_turn(self, pool: ThreadPoolExecutor, run: TableRun, queue: Queue) -> None:
        run.queue = queue
        if not run.table.is_recovered:
            run.begin(pool.submit(self._recover, run))
            return
        ranges = self._pending(run)
        if ranges is None:
            return
        if snapshot := run.ended_snapshot:
            run.last_turn_at = time.monotonic()
            run.begin(pool.submit(self._end_snapshot, run.table, snapshot))
        elif not ranges:
            self._settle(run)
            if run.table.is_service_due(is_idle=True):
                self._serve(pool, run)
        elif self._is_service_due(run):
            self._serve(pool, run)
        else:
            run.is_caught_up, run.last_turn_at = False, time.monotonic()
            run.begin(pool.submit(self._work, run.table, ranges))

    def _pending(self, run: TableRun) -> tuple[OffsetRange, ...] | None:
        """Return the table's next ranges. None: the table failed, which is recorded."""
        assert run.extent is not None
        try:
            return run.table.pending(run.extent, self._most_events(run))
        except TributaryError as error:
            self._block(run, error)
        except PASSING_FAILURES as error:
            self._retry_later(run, error)
        return None

    def _settle(self, run: TableRun) -> None:
        """Take note that the table has applied all events."""
        run.set_well()
        if not run.is_caught_up:
            run.is_caught_up = True
            self.progress.write(CaughtUp(run.table.name))

    def _is_service_due(self, run: TableRun) -> bool:
        """Return whether services are due for a table with events to commit.

        Services slow down all tables, so those of equally busy tables must not run at the same time.
        """
        if any(other.is_in_service for other in self._runs.values()):
            return False
        is_apart = time.monotonic() - self._last_service_at >= self.pace.seconds_between_services
        return run.table.is_service_due(is_idle=False, is_apart=is_apart)

    def _serve(self, pool: ThreadPoolExecutor, run: TableRun) -> None:
        run.is_caught_up = run.is_caught_up and run.lag == 0
        run.is_in_service, self._last_service_at = True, time.monotonic()
        run.last_turn_at = self._last_service_at
        run.begin(pool.submit(self._maintain, run.table))

    def _most_events(self, run: TableRun) -> int:
        """Return the limit of the next commit. A long commit delays only tables with little to commit."""
        others = (other for other in self._runs.values() if other is not run)
        if any(other.is_behind_by_little(self.pace.events_per_turn) for other in others):
            return self.pace.events_per_turn
        has_table = run.table.columns is not None
        return self.pace.events_per_commit if has_table else self.pace.events_per_load

    def _recover(self, run: TableRun) -> bool:
        run.recorded = self.outcomes.read(run.table.quarantine_path)
        run.table.recover()
        return False

    def _work(self, table: TableIngest, ranges: tuple[OffsetRange, ...]) -> bool:
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", table.name)
        committed = table.apply(ranges)
        if committed is not None:
            self.progress.write(committed)
        return True

    def _end_snapshot(self, table: TableIngest, snapshot: Read) -> bool:
        self.progress.write(end_snapshot(table, snapshot))
        return True

    def _maintain(self, table: TableIngest) -> bool:
        """Run the table's services. With `follow`, run one part of a compaction; the next turn continues."""
        table.maintain()
        while not (self.follow or self.stop.is_set()) and table.is_service_due(is_idle=True):
            table.maintain()
        return True

    def _collect_finished(self, turns: SharedTurns) -> None:
        for run in self._runs.values():
            if run.working is None or not run.working.done():
                continue
            done, run.working, run.is_in_service = run.working, None, False
            turns.end(run.queue, time.monotonic() - run.began_at)
            match error := done.exception():
                case None:
                    if done.result():
                        run.set_well()
                    if self.catalog is not None:
                        self.catalog.offer(run.table)
                case TributaryError():
                    self._block(run, error)
                case Exception():
                    self._block_or_retry(run, error)
                case _:
                    raise error

    def _block(self, run: TableRun, error: TributaryError) -> None:
        run.is_blocked, run.error = True, error.reason
        run.set_outcome("blocked", error)
        remedies = remedies_for_table(error.remedies, run.table.name)
        is_lacking = isinstance(error, MissingMember)
        self.progress.write(Blocked(run.table.name, run.error, remedies, is_lacking))

    def _block_or_retry(self, run: TableRun, error: Exception) -> None:
        missing = missing_member(error)
        if missing is None:
            self._retry_later(run, error)
        else:
            self._block(run, missing)

    def _retry_later(self, run: TableRun, error: Exception) -> None:
        """Schedule a retry. The table then reads its state again, because the failed commit may be in it."""
        run.attempts += 1
        run.is_caught_up = False
        run.error = f"{type(error).__name__}: {error}"
        if not self.follow and run.attempts >= self.pace.attempts:
            run.is_blocked = True
            run.set_outcome("blocked", error)
            self.progress.write(Blocked(run.table.name, run.error))
            return
        run.set_outcome("retrying", error)
        wait = min(self.pace.first_retry_seconds * 2 ** (run.attempts - 1), self.pace.longest_retry_seconds)
        run.not_before = time.monotonic() + wait
        run.table.forget()
        self.progress.write(Failed(run.table.name, run.error, run.attempts, wait))

    def _measure(self, metrics: MetricsSender) -> None:
        for run in self._runs.values():
            if not run.is_paused:
                metrics.offer(run.state)

    def _record_outcomes(self) -> None:
        """Store changed outcomes. The next discovery retries those that cannot be written now."""
        for run in self._runs.values():
            if not run.is_known or run.outcome == run.recorded:
                continue
            folder = run.table.quarantine_path
            try:
                if run.outcome is None:
                    self.outcomes.clear(folder)
                else:
                    self.outcomes.write(folder, run.outcome)
                run.recorded = run.outcome
            except PASSING_FAILURES as error:
                print(f"Cannot store the status of {run.table.name}: {error}", file=sys.stderr)


def _order_in_queue(run: TableRun) -> tuple[bool, bool, float, bool]:
    """Tables whose services are due come last, and those that waited longest first.

    A table that is not recovered may have nothing to do, unless its topic has new events: then it is live."""
    is_recovered = run.table.is_recovered
    is_live = not is_recovered and run.last_event_at is not None
    return is_recovered and run.lag == 0, not is_live, run.last_turn_at, not is_recovered
