"""The first minute of an app that follows: what a commit costs while Java compiles, beside a later minute.

Changes begin before the app does, at a steady rate. The CPU time is that of the app's JVM.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from bench import freshness
from bench.freshness import CATCH_UP_SECONDS, Commit
from bench.processor_time import ProcessorTimes, kind_of_thread, read_processor_times
from bench.results import Figure, Results
from tributary.local.spark import SERVICE as SPARK
from tributary.operations.workspace import Workspace

COMPILERS = frozenset(map(kind_of_thread, ("C1 CompilerThre", "C2 CompilerThre")))
"""The kinds of Java's compiler threads. Linux keeps 15 characters of their names."""


@dataclass(frozen=True)
class Settings:
    """The settings: `tables` with `rows` each, which change all the time.

    ends  the ends of the measured times, in seconds after every table's first commit
    """

    name: str = "cold"
    tables: int = 4
    rows: int = 1_000
    changes_per_second: float = 200.0
    ends: tuple[float, ...] = (20.0, 40.0, 60.0, 180.0, 240.0)


FULL = Settings()
QUICK = Settings(tables=2, ends=(10.0, 20.0))


@dataclass(frozen=True)
class Reading:
    """The CPU time up to a moment, in seconds since 1970."""

    at: float
    times: ProcessorTimes


@dataclass(frozen=True)
class Observed:
    """The first reading is of the app's start, and the second of the moment when each table had a commit."""

    readings: Sequence[Reading]
    commits: Sequence[Commit]


def run(settings: Settings = FULL) -> Results:
    """Measure one start. The lake has to equal its database in the end. Raises NoResult."""
    return Results(settings.name, asdict(settings), tuple(figures(_observe(settings))))


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield what the app did between two readings. `of` is the time since each table had a commit."""
    first = observed.readings[1].at
    for before, after in pairwise(observed.readings):
        label = "start" if before.at < first else f"{before.at - first:.0f} to {after.at - first:.0f} s"
        of = {"when": label}
        used = after.times.since(before.times)
        done = [one for one in observed.commits if before.at <= one.ended < after.at]
        cpu = used.processes[SPARK]
        yield Figure("seconds", round(after.at - before.at, 1), "s", of)
        yield Figure("commits", len(done), "", of)
        yield Figure("busy", round(cpu / (after.at - before.at), 2), "cores", of)
        compiling = sum(used.threads.get((SPARK, kind), 0.0) for kind in COMPILERS)
        yield Figure("compilers", round(compiling / (after.at - before.at), 2), "cores", of)
        if not done:
            continue
        yield Figure("a commit", round(cpu / len(done), 2), "CPU s", of)
        yield from freshness.reported_freshness(done, of)


def _observe(settings: Settings) -> Observed:
    work = freshness.Settings(
        tables=settings.tables, rows=settings.rows, changes_per_second=settings.changes_per_second
    )
    with freshness.running_pipeline(freshness.LAKE, freshness.seed_of(work)) as workspace:
        return _observe_start(workspace, settings, work)


def _observe_start(workspace: Workspace, settings: Settings, work: freshness.Settings) -> Observed:
    for table in work.changed:
        freshness.wait_until_kafka_holds(workspace, table, settings.rows)
    changes = freshness.workload_of(workspace, work)
    try:
        with freshness.following_app(workspace) as (app, commits):
            pids = freshness.pids_of_services(workspace, [SPARK])
            readings = [_reading(pids)]

            def read_after(seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
                freshness.wait_while_running(app, seconds, is_over)
                readings.append(_reading(pids))

            names = {*work.changed}
            read_after(CATCH_UP_SECONDS, lambda: {commit.table for commit in list(commits)} >= names)
            for before, end in pairwise((0.0, *settings.ends)):
                read_after(end - before)
            changes.finish()
            freshness.wait_for_lake(workspace)
    finally:
        changes.kill()
    freshness.check_lake(workspace)
    return Observed(tuple(readings), tuple(commits))


def _reading(pids: Mapping[str, int]) -> Reading:
    now = time.time()
    return Reading(now, read_processor_times(now, pids))
