"""The loop of a run: look at the tables, and give them turns."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from spark_app.catalog.sync import CatalogSync
from spark_app.reports import CaughtUp, Stopped
from spark_app.run.failures import Failures
from spark_app.run.metrics import MetricsSender
from spark_app.run.pace import Pace
from spark_app.run.stop_request import StopRequest
from spark_app.run.table_run import TableRun
from spark_app.run.table_runs import TableRuns
from spark_app.run.turns import Queue, SharedTurns
from spark_app.sources.event import OffsetRange
from spark_app.sources.passing_failures import PASSING_FAILURES
from spark_app.table.snapshot_end import end_snapshot
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import Read


@dataclass
class Ingest:
    """Bring the tables up to date with their source and, if they follow it, keep them up to date.

    catalog  shows the tables to query engines, if given
    metrics  reports the tables' state to CloudWatch, if given
    """

    spark: SparkSession
    tables: TableRuns
    catalog: CatalogSync | None = None
    metrics: MetricsSender | None = None
    pace: Pace = field(default_factory=Pace)
    stop: StopRequest = field(default_factory=StopRequest)
    _last_service_at: float = 0.0
    _next_look_at_all: float = 0.0

    def run(self) -> bool:
        """Run to the end. Return whether every table is healthy and its catalog entry is up to date.

        A table's failure does not stop the others.
        """
        next_discovery = next_metrics = 0.0
        turns = SharedTurns(self.pace.parallel)
        with ThreadPoolExecutor(self.pace.parallel, thread_name_prefix="table") as pool:
            while not self.stop.is_set():
                if time.monotonic() >= next_discovery:
                    self._look_at_lake()
                    next_discovery = time.monotonic() + self.pace.discovery_seconds
                self._collect_finished(turns)
                if not self.tables.follow and all(run.is_over for run in self.tables):
                    break
                self._give_turns(pool, turns)
                if self.metrics is not None and time.monotonic() >= next_metrics:
                    self._measure(self.metrics)
                    next_metrics = time.monotonic() + self.pace.metrics_seconds
                if self.catalog is not None:
                    self.catalog.step()
                self._wait_for_work()
        self._collect_finished(turns)
        self.tables.record_outcomes()
        not_shown = {} if self.catalog is None else self.catalog.finish()
        outcomes = {run.table.name: run.error or "ok" for run in self.tables}
        self.tables.progress.write(Stopped(outcomes, not_shown))
        return not not_shown and all(run.error is None for run in self.tables)

    @property
    def _failures(self) -> Failures:
        return Failures(self.tables.progress, self.pace, self.tables.follow)

    def _look_at_lake(self) -> None:
        """Find new topics, and what people and commands want of each table.

        An unavailable source is an error at the start. Later, the known tables retry."""
        try:
            self.tables.look()
        except PASSING_FAILURES as error:
            if not self.tables:
                raise
            for run in self.tables:
                if run.working is None and not run.is_over:
                    self._failures.look_again_later(run, error)
        self.tables.look_for_pauses()
        self.tables.record_outcomes()

    def _wait_for_work(self) -> None:
        """Wait until a table's turn ends or the next poll is due."""
        working = [run.working for run in self.tables if run.working is not None]
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
        is_any_live = any(run.is_live(self.pace.live_seconds) for run in self.tables)
        while True:
            queue = turns.next_queue(
                [queue for queue, runs in in_turn.items() if runs],
                [run.queue for run in self.tables if run.working is not None],
                keeps_one_for_live=is_any_live,
            )
            if queue is None:
                return
            self._give_turn(pool, in_turn[queue].popleft(), queue)

    def _look_at_topics(self, *, all_of_them: bool) -> list[TableRun]:
        """Look at the topics of live tables, or of all. Return the tables that may have something to do."""
        now, live_seconds = time.monotonic(), self.pace.live_seconds
        open_runs = {topic: run for topic, run in self.tables.by_topic.items() if not run.is_over}
        looked_at = {
            topic: run
            for topic, run in open_runs.items()
            # A table is looked at before its first turn: where it begins depends on its topic.
            if all_of_them or run.held is None or run.is_behind or run.is_live(live_seconds)
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
            extents = self.tables.source.extents(frozenset(looked_at))
        except PASSING_FAILURES as error:
            for run in free:
                self._failures.look_again_later(run, error)
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
            run.begin(self._submit(pool, run, lambda: self._recover(run)))
            return
        ranges = self._pending(run)
        if ranges is None:
            return
        if snapshot := run.ended_snapshot:
            run.last_turn_at = time.monotonic()
            run.begin(self._submit(pool, run, lambda: self._end_snapshot(run.table, snapshot)))
        elif not ranges:
            self._settle(run)
            if run.table.is_service_due(is_idle=True):
                self._serve(pool, run)
        elif self._is_service_due(run):
            self._serve(pool, run)
        else:
            run.is_caught_up, run.last_turn_at = False, time.monotonic()
            run.begin(self._submit(pool, run, lambda: self._work(run.table, ranges)))

    def _pending(self, run: TableRun) -> tuple[OffsetRange, ...] | None:
        """Return the table's next ranges. None: the table failed, which is recorded."""
        assert run.extent is not None
        try:
            return run.table.pending(run.extent, self._most_events(run))
        except TributaryError as error:
            self._failures.block(run, error)
        except PASSING_FAILURES as error:
            self._failures.retry_later(run, error)
        return None

    def _settle(self, run: TableRun) -> None:
        """Take note that the table has applied all events."""
        run.set_well()
        if not run.is_caught_up:
            run.is_caught_up = True
            self.tables.progress.write(CaughtUp(run.table.name))

    def _is_service_due(self, run: TableRun) -> bool:
        """Return whether services are due for a table with events to commit.

        Services slow down all tables, so those of equally busy tables must not run at the same time.
        """
        if any(other.is_in_service for other in self.tables):
            return False
        is_apart = time.monotonic() - self._last_service_at >= self.pace.seconds_between_services
        return run.table.is_service_due(is_idle=False, is_apart=is_apart)

    def _serve(self, pool: ThreadPoolExecutor, run: TableRun) -> None:
        run.is_caught_up = run.is_caught_up and run.lag == 0
        run.is_in_service, self._last_service_at = True, time.monotonic()
        run.last_turn_at = self._last_service_at
        run.begin(self._submit(pool, run, lambda: self._maintain(run.table)))

    def _most_events(self, run: TableRun) -> int:
        """Return the limit of the next commit. A long commit delays only tables with little to commit."""
        others = (other for other in self.tables if other is not run)
        if any(other.is_behind_by_little(self.pace.events_per_turn) for other in others):
            return self.pace.events_per_turn
        has_table = run.table.columns is not None
        return self.pace.events_per_commit if has_table else self.pace.events_per_load

    def _recover(self, run: TableRun) -> bool:
        run.recorded = self.tables.outcomes.read(run.table.quarantine_path)
        run.table.recover()
        if snapshot := run.whole_snapshot:
            run.table.begin_at(snapshot.began)
        return False

    def _submit(self, pool: ThreadPoolExecutor, run: TableRun, work: Callable[[], bool]) -> Future[bool]:
        """Let a thread do a table's work. All of its jobs share what Spark gives this table."""

        def in_its_pool() -> bool:
            self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", run.table.name)
            return work()

        return pool.submit(in_its_pool)

    def _work(self, table: TableIngest, ranges: tuple[OffsetRange, ...]) -> bool:
        committed = table.apply(ranges)
        if committed is not None:
            self.tables.progress.write(committed)
        return True

    def _end_snapshot(self, table: TableIngest, snapshot: Read) -> bool:
        self.tables.progress.write(end_snapshot(table, snapshot))
        return True

    def _maintain(self, table: TableIngest) -> bool:
        """Run the table's services. With `follow`, run one part of a compaction; the next turn continues."""
        table.maintain()
        while not (self.tables.follow or self.stop.is_set()) and table.is_service_due(is_idle=True):
            table.maintain()
        return True

    def _collect_finished(self, turns: SharedTurns) -> None:
        for run in self.tables:
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
                case Exception():
                    self._failures.take(run, error)
                case _:
                    raise error

    def _measure(self, metrics: MetricsSender) -> None:
        for run in self.tables:
            if not run.is_paused:
                metrics.offer(run.state)


def _order_in_queue(run: TableRun) -> tuple[bool, bool, float, bool, int]:
    """Tables whose services are due come last, and those that waited longest first.

    A table that is not recovered may have nothing to do, unless its topic has new events: then it is live.
    Otherwise, the tables with the newest events are the likeliest to have something to do."""
    is_recovered = run.table.is_recovered
    is_live = not is_recovered and run.last_event_at is not None
    age = 0 if is_recovered else -run.newest_event_ms
    return is_recovered and run.lag == 0, not is_live, run.last_turn_at, not is_recovered, age
