"""What a table costs in a lake with hundreds of them: its first load, its rest, its share of a restart.

Two lakes with the same busy tables are measured one after the other. Only the second one has many tables
besides that never change. Their difference is what those cost.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from bench import freshness, workload
from bench.freshness import CATCH_UP_SECONDS, NoResult, Workers
from bench.processor_time import ProcessorTimes, read_processor_times
from bench.resources import read_resources
from bench.results import Figure, Results, quantile
from tributary.local.spark import SERVICE as SPARK
from tributary.operations.runs.ingest_run import IngestRun
from tributary.operations.workspace import Workspace


@dataclass(frozen=True)
class Settings:
    """The settings of both lakes: `busy` tables with `rows` each, and `idle` ones in the second lake.

    rest_seconds        how long no table changes
    warm_up_seconds     how long the busy tables change before the measurement
    seconds             how long they change meanwhile
    """

    name: str = "many_tables"
    busy: int = 20
    idle: int = 180
    rows: int = 100
    rest_seconds: float = 60.0
    warm_up_seconds: float = 60.0
    seconds: float = 120.0
    changes_per_second: float = 50.0


COMMANDS = (("tables", "tables"), ("tables, again", "tables"), ("status", "status"))
"""The commands that are timed, with a label each. The first `tables` counts the rows of all tables."""

FULL = Settings()
THOUSAND = Settings("many_tables_thousand", idle=980)
QUICK = Settings(busy=2, idle=4, rest_seconds=5.0, warm_up_seconds=10.0, seconds=30.0)


@dataclass(frozen=True)
class Observed:
    """One lake, in seconds. `load`, `rest` and `commit` are CPU seconds of the app.

    load      from the app's start until it has loaded all tables
    rest      in a second in which no table changes
    commit    of a small commit of a busy table
    fresh     from each probe row's commit until a reader has it
    restart   from the app's start until it has committed a change of a busy table
    commands  how long each of `COMMANDS` takes
    resident  bytes of the app
    """

    tables: int
    load: float
    rest: float
    commit: float
    fresh: Sequence[float]
    restart: float
    commands: Mapping[str, float]
    resident: int


def run(settings: Settings = FULL) -> Results:
    """Measure both lakes, each of which has to equal its database in the end. Raises `NoResult`."""
    few, many = (_observe(settings, idle) for idle in (0, settings.idle))
    return Results(settings.name, asdict(settings), tuple(figures(few, many)))


def figures(few: Observed, many: Observed) -> Iterator[Figure]:
    """Yield the figures of the two lakes and of the tables that only the second one has."""
    for lake in (few, many):
        of = {"tables": lake.tables}
        yield Figure("start and first loads", round(lake.load, 1), "CPU s", of)
        yield Figure("a small commit", round(lake.commit, 3), "CPU s", of)
        yield Figure("freshness p50", round(quantile(lake.fresh, 0.5), 3), "s", of)
        yield Figure("freshness p95", round(quantile(lake.fresh, 0.95), 3), "s", of)
        yield Figure("at rest", round(lake.rest, 3), "cores", of)
        yield Figure("a restart until a change is committed", round(lake.restart, 1), "s", of)
        yield Figure("resident memory", round(lake.resident / 1e6), "MB", of)
        for command, seconds in lake.commands.items():
            yield Figure("command", round(seconds, 2), "s", {**of, "command": command})
    more = many.tables - few.tables
    first_load = (many.load - few.load) / more
    yield Figure("first load of a table", round(first_load, 3), "CPU s")
    yield Figure("first load against a small commit", round(first_load / many.commit, 2), "x")
    yield Figure("an idle table", round(100 * (many.rest - few.rest) / more, 4), "% of a core")
    yield Figure("memory of a table", round((many.resident - few.resident) / more / 1e6, 2), "MB")
    ratio = quantile(many.fresh, 0.95) / quantile(few.fresh, 0.95)
    yield Figure("freshness p95 with idle tables against without", round(ratio, 2), "x")


def _observe(settings: Settings, idle: int) -> Observed:
    work = freshness.Settings(
        tables=settings.busy,
        idle_tables=idle,
        rows=settings.rows,
        idle_rows=settings.rows,
        changes_per_second=settings.changes_per_second,
    )
    with freshness.running_pipeline(freshness.LAKE, freshness.seed_of(work)) as workspace:
        return _observe_lake(workspace, settings, work)


def _observe_lake(workspace: Workspace, settings: Settings, work: freshness.Settings) -> Observed:
    names = {*work.changed, *work.idle}
    for table in names:
        freshness.wait_until_kafka_holds(workspace, table, settings.rows)
    with freshness.following_app(workspace) as (app, commits):
        freshness.wait_while_running(
            app, CATCH_UP_SECONDS, lambda: {commit.table for commit in list(commits)} >= names
        )
        load = _cpu(_times(workspace))
        freshness.wait_for_lake(workspace)
        rest = _rest(workspace, app, settings.rest_seconds)
        with Workers(workspace, work) as workers:
            freshness.wait_while_running(app, settings.warm_up_seconds)
            before, began_at = _times(workspace), time.time()
            freshness.wait_while_running(app, settings.seconds)
            used, ended_at = _cpu(_times(workspace).since(before)), time.time()
            _, sightings = workers.finish()
        done = [commit for commit in list(commits) if began_at <= commit.ended < ended_at]
        fresh = [one.read - one.committing for one in sightings if began_at <= one.committing < ended_at]
        if not done or not fresh:
            raise NoResult("No change reached the lake", found=f"{len(done)} commits, {len(fresh)} rows read")
        commands = {label: _seconds_of(workspace, command) for label, command in COMMANDS}
        held = read_resources(freshness.pids_of_services(workspace, [SPARK]), workspace.state.path)
    restart = _restart(workspace, work.changed[0])
    freshness.check_lake(workspace)
    return Observed(
        tables=len(names),
        load=load,
        rest=rest,
        commit=used / len(done),
        fresh=fresh,
        restart=restart,
        commands=commands,
        resident=sum(process.resident for process in held.processes.values()),
    )


def _rest(workspace: Workspace, app: IngestRun, seconds: float) -> float:
    """Return the app's share of a core while nothing changes. Its first looks and services are over then."""
    freshness.wait_while_running(app, seconds / 2)
    before = _times(workspace)
    freshness.wait_while_running(app, seconds)
    times = _times(workspace).since(before)
    return _cpu(times) / times.wall_seconds


def _restart(workspace: Workspace, table: str) -> float:
    """Change a row, start the app, and return the seconds until it has committed the change."""
    with psycopg.connect(freshness.conninfo_of(workspace), autocommit=True) as connection:
        update = sql.SQL("UPDATE {} SET amount = amount + 1 WHERE id = (SELECT max(id) FROM {})")
        name = sql.Identifier(workload.SCHEMA, table)
        connection.execute(update.format(name, name))
    began = time.monotonic()
    with freshness.following_app(workspace) as (app, commits):
        freshness.wait_while_running(
            app, CATCH_UP_SECONDS, lambda: any(commit.table == table for commit in list(commits))
        )
        seconds = time.monotonic() - began
        freshness.wait_for_lake(workspace)
    return seconds


def _times(workspace: Workspace) -> ProcessorTimes:
    return read_processor_times(time.time(), freshness.pids_of_services(workspace, [SPARK]))


def _cpu(times: ProcessorTimes) -> float:
    return sum(times.processes.values())


def _seconds_of(workspace: Workspace, command: str) -> float:
    where = ["--lake", str(workspace.lake_file), "--state", str(workspace.state.path)]
    began = time.perf_counter()
    program = str(Path(sys.executable).with_name("tributary"))
    found = subprocess.run([program, command, "--json", *where], capture_output=True, text=True, check=False)
    if not found.stdout:
        raise NoResult(f"tributary {command} has failed", found=found.stderr.strip()[-500:])
    return time.perf_counter() - began
