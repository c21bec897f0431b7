"""The loop of a run: find tables, give them turns, and handle their failures."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.catalog.sync import CatalogSync
from spark_app.reports import Blocked, CaughtUp, Failed, ProgressWriter, Started, Stopped
from spark_app.run.metrics import MetricsSender, TableState
from spark_app.run.outcome import Outcome, OutcomeStore, State
from spark_app.sources.event import EventSource, OffsetRange, TopicExtent
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import remedies_for_table


@dataclass(frozen=True)
class Pace:
    """How often to poll and how many events to take at once.

    parallel           tables that work at the same time; those that waited longest go first. Few are better
                       than many: with all tables at once, each would be as slow as the whole round.
    events_per_commit  the most events in a commit. Larger commits are faster per event.
    events_per_turn    the most events in a commit while another table has no more than this to commit
    events_per_load    the most events in a table's first commit, which is faster per event than later ones
    """

    poll_seconds: float = 0.1
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
class _TableRun:
    """One table's state in the run.

    working       the current work, which returns whether the table made progress
    target        the offsets at which a run that does not follow ends. None: the run follows.
    outcome       None: nothing is wrong, provided that `is_known`
    recorded      the outcome in the store
    lag           the number of unapplied events at the last look
    got_on_at     when the table last made progress
    last_turn_at  when its last work began
    """

    table: TableIngest
    target: Mapping[int, int] | None
    working: Future[bool] | None = None
    attempts: int = 0
    not_before: float = 0.0
    error: str | None = None
    is_blocked: bool = False
    is_caught_up: bool = False
    is_known: bool = False
    outcome: Outcome | None = None
    recorded: Outcome | None = None
    lag: int = 0
    got_on_at: float = field(default_factory=time.monotonic)
    last_turn_at: float = 0.0
    is_in_service: bool = False

    def set_well(self) -> None:
        self.attempts, self.error, self.outcome, self.is_known = 0, None, None, True
        self.got_on_at = time.monotonic()

    def set_outcome(self, state: State, error: Exception) -> None:
        before = self.outcome or self.recorded
        self.outcome, self.is_known = Outcome.of(state, error, before, self.table.name), True

    @property
    def state(self) -> TableState:
        is_behind = self.is_blocked or not self.is_caught_up
        stuck_seconds = time.monotonic() - self.got_on_at if is_behind else 0.0
        return TableState(self.table.name, self.lag, stuck_seconds, self.is_blocked)

    def is_behind_by_little(self, events: int) -> bool:
        """Tell whether the table has something to commit, but at most `events`."""
        is_known = self.table.is_recovered and not (self.is_over or self.is_caught_up or self.is_blocked)
        return is_known and 0 < self.lag <= events

    @property
    def is_over(self) -> bool:
        return self.working is None and (self.is_blocked or (self.target is not None and self.is_caught_up))


@dataclass
class Ingest:
    """Bring the tables up to date with their source and, with `follow`, keep them up to date.

    table_of  returns a topic's table, or None if the topic does not belong to the lake
    catalog   shows the tables to query engines, if given
    metrics   reports the tables' state to CloudWatch, if given
    """

    spark: SparkSession
    source: EventSource
    table_of: Callable[[str], TableIngest | None]
    progress: ProgressWriter
    outcomes: OutcomeStore
    follow: bool
    catalog: CatalogSync | None = None
    metrics: MetricsSender | None = None
    pace: Pace = Pace()
    stop: StopRequest = field(default_factory=StopRequest)
    _runs: dict[str, _TableRun] = field(default_factory=dict)
    _last_service_at: float = 0.0

    def run(self) -> bool:
        """Run to the end. Return whether every table is healthy and its catalog entry is up to date.

        A table's failure does not stop the others.
        """
        next_discovery = next_metrics = 0.0
        with ThreadPoolExecutor(self.pace.parallel, thread_name_prefix="table") as pool:
            while not self.stop.is_set():
                if time.monotonic() >= next_discovery:
                    self._discover_again()
                    self._record_outcomes()
                    next_discovery = time.monotonic() + self.pace.discovery_seconds
                self._collect_finished()
                if not self.follow and all(run.is_over for run in self._runs.values()):
                    break
                self._give_turns(pool)
                if self.metrics is not None and time.monotonic() >= next_metrics:
                    self._measure(self.metrics)
                    next_metrics = time.monotonic() + self.pace.metrics_seconds
                if self.catalog is not None:
                    self.catalog.step()
                self._wait_for_work()
        self._collect_finished()
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
        extents = self.source.extents(frozenset(found)) if found and not self.follow else {}
        for topic, table in sorted(found.items()):
            self._runs[topic] = _TableRun(table, target=None if self.follow else extents[topic].end)
        if found:
            self.progress.write(Started(tuple(sorted(table.name for table in found.values()))))

    def _wait_for_work(self) -> None:
        """Wait until a table's turn ends or the next poll is due."""
        working = [run.working for run in self._runs.values() if run.working is not None]
        if working:
            wait(working, self.pace.poll_seconds, FIRST_COMPLETED)
        else:
            time.sleep(self.pace.poll_seconds)

    @property
    def _free_turns(self) -> int:
        return self.pace.parallel - sum(run.working is not None for run in self._runs.values())

    def _give_turns(self, pool: ThreadPoolExecutor) -> None:
        """Start work on waiting tables.

        A turn's events are chosen when it begins, so they include the events that came during the wait.
        """
        now = time.monotonic()
        idle = {
            topic: run
            for topic, run in sorted(self._runs.items(), key=lambda item: item[1].last_turn_at)
            if run.working is None and not run.is_over and now >= run.not_before
        }
        for run in idle.values():
            if self._free_turns > 0 and not run.table.is_recovered:
                self._begin(run, pool.submit(self._recover, run))
        ready = {topic: run for topic, run in idle.items() if run.working is None and run.table.is_recovered}
        if not ready or self._free_turns <= 0:
            return
        try:
            extents = self.source.extents(frozenset(ready))
        except PASSING_FAILURES as error:
            for run in ready.values():
                self._retry_later(run, error)
            return
        for topic, run in ready.items():
            run.lag = run.table.behind(extents[topic])
        for topic, run in ready.items():
            if self._free_turns > 0:
                self._start_if_pending(pool, run, extents[topic])

    def _start_if_pending(self, pool: ThreadPoolExecutor, run: _TableRun, held: TopicExtent) -> None:
        extent = held if run.target is None else TopicExtent(held.beginning, run.target)
        try:
            ranges = run.table.pending(extent, self._most_events(run))
        except TributaryError as error:
            self._block(run, error)
            return
        except PASSING_FAILURES as error:
            self._retry_later(run, error)
            return
        if ranges:
            run.is_caught_up = False
            if self._is_service_due(run):
                self._serve(pool, run)
            else:
                self._begin(run, pool.submit(self._work, run.table, ranges))
            return
        run.set_well()
        if not run.is_caught_up:
            run.is_caught_up = True
            self.progress.write(CaughtUp(run.table.name))
        if run.table.is_service_due(is_idle=True):
            self._serve(pool, run)

    def _is_service_due(self, run: _TableRun) -> bool:
        """Tell whether services are due for a table with events to commit.

        Services slow down all tables, so those of equally busy tables must not run at the same time.
        """
        if any(other.is_in_service for other in self._runs.values()):
            return False
        is_apart = time.monotonic() - self._last_service_at >= self.pace.seconds_between_services
        return run.table.is_service_due(is_idle=False, is_apart=is_apart)

    def _serve(self, pool: ThreadPoolExecutor, run: _TableRun) -> None:
        self._begin(run, pool.submit(self._maintain, run.table))
        run.is_in_service, self._last_service_at = True, run.last_turn_at

    def _begin(self, run: _TableRun, working: Future[bool]) -> None:
        run.working, run.last_turn_at = working, time.monotonic()

    def _most_events(self, run: _TableRun) -> int:
        """Return the limit of the next commit. A long commit delays only tables with little to commit."""
        others = (other for other in self._runs.values() if other is not run)
        if any(other.is_behind_by_little(self.pace.events_per_turn) for other in others):
            return self.pace.events_per_turn
        has_table = run.table.columns is not None
        return self.pace.events_per_commit if has_table else self.pace.events_per_load

    def _recover(self, run: _TableRun) -> bool:
        run.recorded = self.outcomes.read(run.table.quarantine_path)
        run.table.recover()
        return False

    def _work(self, table: TableIngest, ranges: tuple[OffsetRange, ...]) -> bool:
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", table.name)
        committed = table.apply(ranges)
        if committed is not None:
            self.progress.write(committed)
        return True

    def _maintain(self, table: TableIngest) -> bool:
        """Run the table's services. With `follow`, run one part of a compaction; the next turn continues."""
        table.maintain()
        while not (self.follow or self.stop.is_set()) and table.is_service_due(is_idle=True):
            table.maintain()
        return True

    def _collect_finished(self) -> None:
        for run in self._runs.values():
            if run.working is None or not run.working.done():
                continue
            done, run.working, run.is_in_service = run.working, None, False
            match error := done.exception():
                case None:
                    if done.result():
                        run.set_well()
                    if self.catalog is not None:
                        self.catalog.offer(run.table)
                case TributaryError():
                    self._block(run, error)
                case Exception():
                    self._retry_later(run, error)
                case _:
                    raise error

    def _block(self, run: _TableRun, error: TributaryError) -> None:
        run.is_blocked, run.error = True, error.reason
        run.set_outcome("blocked", error)
        remedies = remedies_for_table(error.remedies, run.table.name)
        self.progress.write(Blocked(run.table.name, run.error, remedies))

    def _retry_later(self, run: _TableRun, error: Exception) -> None:
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
