"""Freshness: the time from a commit in the database until a reader gets the row, seen from outside.

`tributary up` and `tributary ingest --follow` run the whole pipeline. The database, the workload and the
probe run on the same machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg
from confluent_kafka import Consumer, KafkaException, TopicPartition
from psycopg.conninfo import make_conninfo
from rich.console import Console

from bench import probe, workload
from bench.acceleration import lake_entry
from bench.probe import Sighting
from bench.processor_time import ProcessorTimes, read_processor_times
from bench.resources import Resources, sampled
from bench.results import Figure, Results, quantile
from tributary.cli.run_watch import stop_run
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.errors import TributaryError
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local.all_servers import SERVICES
from tributary.local.engine_servers import HOST
from tributary.local.pipeline import down, up
from tributary.local.postgres import ADMIN
from tributary.local.process import read_process
from tributary.local.spark import SERVICE as SPARK
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.proof import read_source_tables, reconcile, wait_until_lake_holds
from tributary.operations.runs.ingest_run import IngestRun, start_ingest
from tributary.operations.source_links import source_links
from tributary.operations.workspace import Workspace

SOURCE = "shop"
CATCH_UP_SECONDS = 900.0

LAKE = f"""\
[lake]
name = "freshness"
{{acceleration}}

[source.{SOURCE}]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""
_BACKFILLED = "backfilled"
_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_TO_END = 150.0


@dataclass(frozen=True)
class Settings:
    """The settings of a run of `seconds`, after `warm_up_seconds` of the same work.

    tables, idle_tables      tables with and without changes
    backfill_rows            rows of one more table that wait in Kafka when the app starts. The measurement
                             ends no later than this backfill.
    seconds_between_samples  interval of the samples of memory, threads, files and disk. 0: none are taken.
    """

    name: str = "freshness"
    tables: int = 4
    idle_tables: int = 0
    backfill_rows: int = 0
    rows: int = 20_000
    idle_rows: int = 1_000
    seconds: float = 600.0
    warm_up_seconds: float = 60.0
    changes_per_second: float = 200.0
    changes_per_transaction: int = 5
    seconds_between_samples: float = 0.0
    seconds_between_rows: float = 2.0
    seconds_between_polls: float = 0.15
    seed: int = 1

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the tables that change."""
        return tuple(f"orders_{number}" for number in range(1, self.tables + 1))

    @property
    def idle(self) -> tuple[str, ...]:
        """The names of the tables that do not change."""
        return tuple(f"idle_{number}" for number in range(1, self.idle_tables + 1))


FULL = Settings()
QUICK = Settings(rows=2_000, seconds=10.0, warm_up_seconds=3.0, seconds_between_rows=0.25)
IDLE_TABLES = Settings("freshness_idle_tables", idle_tables=16, seconds=300.0)
BACKFILL = Settings("freshness_backfill", backfill_rows=2_000_000, seconds=300.0, warm_up_seconds=10.0)


class NoResult(TributaryError):
    """The lake is wrong or a part has failed, so the measurement is worthless."""


@dataclass(frozen=True)
class Commit:
    """A commit as the app reported it, with moments in seconds since 1970.

    until      the events of the table so far
    freshness  the app's own p50 and p95 in seconds, from the source's clock to the app's
    """

    table: str
    began: float
    ended: float
    events: int
    until: int
    phases: Mapping[str, float]
    freshness: tuple[float, float] | None


@dataclass(frozen=True)
class Record:
    """A probe row in Kafka: the time it was sent there (seconds since 1970) and its offset."""

    table: str
    key: int
    sent: float
    offset: int


@dataclass(frozen=True)
class Observed:
    """Everything observed, and the CPU time used between `began` and `ended`."""

    began: float
    ended: float
    sightings: tuple[Sighting, ...]
    commits: tuple[Commit, ...]
    records: tuple[Record, ...]
    changes: Mapping[int, int]
    latest_seconds: float
    processors: ProcessorTimes
    resources: tuple[Resources, ...] = ()


def run(settings: Settings = FULL) -> Results:
    """Start everything, measure, prove that the lake equals the database, and stop everything.

    Raises NoResult if the lake differs. Errors of a failing part pass through.
    """
    return results_of(observe(settings), settings)


def observe(settings: Settings) -> Observed:
    """Do what `run` does, but return the single observations."""
    with running_pipeline(LAKE, seed_of(settings)) as workspace:
        return _observe(workspace, settings)


@contextmanager
def running_pipeline(
    lake: str, seed: Callable[[Source, psycopg.Connection], None] | None = None
) -> Iterator[Workspace]:
    """Run the servers of a lake in a folder of its own within the context. The app does not run yet.

    `lake` is a lake file with a place for `acceleration`. `seed` fills each database.
    """
    folder = Path(tempfile.mkdtemp(prefix="tributary-bench-"))
    try:
        (folder / "lake.toml").write_text(lake.format(acceleration=lake_entry()))
        workspace = Workspace.open(folder / "lake.toml", folder / "state")
        with _termination_raises():
            try:
                up(workspace.lake, workspace.state, seed=seed)
                yield workspace
            finally:
                down(workspace.state)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that it leaves no server running."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def seed_of(settings: Settings) -> Callable[[Source, psycopg.Connection], None]:
    def create_tables(_: Source, connection: psycopg.Connection) -> None:
        for table in settings.changed:
            workload.create_table(connection, table, settings.rows)
        for table in settings.idle:
            workload.create_table(connection, table, settings.idle_rows)
        if settings.backfill_rows:
            workload.create_table(connection, _BACKFILLED, settings.backfill_rows)

    return create_tables


def _observe(workspace: Workspace, settings: Settings) -> Observed:
    if settings.backfill_rows:
        wait_until_kafka_holds(workspace, _BACKFILLED, settings.backfill_rows)
    with following_app(workspace) as (app, commits):
        if settings.backfill_rows:
            wait_while_running(
                app, CATCH_UP_SECONDS, lambda: {commit.table for commit in commits} >= {*settings.changed}
            )
        else:
            wait_for_lake(workspace)
        with Workers(workspace, settings) as workers:
            wait_while_running(app, settings.warm_up_seconds)
            if _is_backfilled(settings, commits):
                raise NoResult("The backfill was over before the others had warmed up")
            pids = pids_of(workspace, workers)
            before, began = read_processor_times(time.time(), pids), time.time()
            with sampled(pids, workspace.state.path, settings.seconds_between_samples) as resources:
                wait_while_running(app, settings.seconds, lambda: _is_backfilled(settings, commits))
            after, ended = read_processor_times(time.time(), pids), time.time()
            summary, sightings = workers.finish()
        wait_for_lake(workspace)
        check_lake(workspace)
        records = tuple(_read_records(workspace, settings.changed, began))
    return Observed(
        began,
        ended,
        sightings,
        tuple(commits),
        records,
        summary.changes,
        summary.latest_seconds,
        after.since(before),
        tuple(resources),
    )


@contextmanager
def following_app(workspace: Workspace) -> Iterator[tuple[IngestRun, Sequence[Commit]]]:
    """Run the app, following Kafka, within the context. Yield the run and its reported commits so far."""
    commits: list[Commit] = []

    def take(line: str) -> None:
        report = json.loads(line)
        if report["event"] == "commit":
            commits.append(commit_of(report))

    app = start_ingest(workspace, Console(stderr=True), follow=True, on_line=take)
    try:
        yield app, commits
    finally:
        stop_run(app)
    app.wait()


def commit_of(report: Mapping[str, Any]) -> Commit:
    """Return the commit that a report of the app describes."""
    ended = datetime.fromisoformat(report["at"]).timestamp()
    fresh = report["freshness_ms"]
    # The topics in Kafka have one partition.
    until = sum(report["positions"].values())
    return Commit(
        table=TableName.parse(report["table"]).table,
        began=ended - report["seconds"],
        ended=ended,
        events=report["events"],
        until=until,
        phases=report.get("phases") or {},
        freshness=None if fresh is None else (fresh["p50"] / 1000, fresh["p95"] / 1000),
    )


class Workers:
    """The processes of the workload and the probe."""

    def __init__(self, workspace: Workspace, settings: Settings) -> None:
        conninfo, lake = conninfo_of(workspace), workspace.lake.names
        secrets = workspace.settings.secrets
        paths = {
            table: f"{lake.silver_bucket}/{lake.table_path(TableName(SOURCE, workload.SCHEMA, table))}"
            for table in settings.changed
        }
        self.workload = workload_of(workspace, settings)
        self.probe = Worker(
            "bench.probe",
            probe.Orders(
                conninfo,
                paths,
                workspace.settings.s3_endpoint,
                secrets.s3_access_key.get_secret_value(),
                secrets.s3_secret_key.get_secret_value(),
                settings.seconds_between_rows,
                settings.seconds_between_polls,
                settings.seed,
            ),
        )

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.workload.kill()
        self.probe.kill()

    def finish(self) -> tuple[workload.Summary, tuple[Sighting, ...]]:
        """Stop both processes and return what they saw. Raise NoResult if one has failed."""
        sightings = tuple(Sighting(**json.loads(line)) for line in self.probe.finish())
        (line,) = self.workload.finish()
        found = json.loads(line)
        changes = {int(second): changes for second, changes in found["changes"].items()}
        return workload.Summary(changes, found["latest_seconds"]), sightings


class Worker:
    """A module that runs as a process until its standard input closes."""

    def __init__(self, module: str, orders: workload.Orders | probe.Orders) -> None:
        self._module = module
        self._lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        # Every user can see a process's arguments, so the orders go to standard input.
        self._process.stdin.write(json.dumps(asdict(orders)) + "\n")
        self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, name=module, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def finish(self) -> Sequence[str]:
        """Wait for the process to end and return the lines it printed. Raise NoResult if it failed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        status = self._process.wait(_SECONDS_TO_END)
        self._reader.join()
        if status != 0:
            raise NoResult(f"{self._module} has failed", found=f"status {status}")
        return self._lines

    def kill(self) -> None:
        """Kill the process if it is still running."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(self._process.stdout)


def workload_of(workspace: Workspace, settings: Settings) -> Worker:
    """Start to change the tables."""
    return Worker(
        "bench.workload",
        workload.Orders(
            conninfo_of(workspace),
            settings.changed,
            settings.rows,
            settings.changes_per_second,
            settings.changes_per_transaction,
            settings.seed,
        ),
    )


def conninfo_of(workspace: Workspace) -> str:
    source = workspace.lake.source(SOURCE)
    assert isinstance(source, PostgresSource)
    return make_conninfo(
        host=HOST,
        port=workspace.settings.ports.postgres,
        dbname=source.database,
        user=ADMIN,
        password=workspace.settings.secrets.postgres_admin.get_secret_value(),
    )


def wait_while_running(app: IngestRun, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
    """Wait for `seconds` or until `is_over`. Raise NoResult if the app ends or a table fails."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_over():
        if app.is_over(_SECONDS_BETWEEN_LOOKS) or app.progress.failures:
            raise NoResult("The app has failed", found=f"{dict(app.progress.failures)}")


def _is_backfilled(settings: Settings, commits: Sequence[Commit]) -> bool:
    return settings.backfill_rows > 0 and any(
        commit.table == _BACKFILLED and commit.until >= settings.backfill_rows for commit in list(commits)
    )


def wait_until_kafka_holds(workspace: Workspace, table: str, events: int) -> None:
    lake = workspace.lake
    topic = lake.source_names(lake.source(SOURCE)).topic(workload.SCHEMA, table)
    deadline = time.monotonic() + CATCH_UP_SECONDS
    with _consumer(workspace) as consumer:
        while True:
            try:
                if consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1] >= events:
                    return
            except KafkaException:
                pass  # the first event creates the topic
            if time.monotonic() > deadline:
                raise NoResult(f"Kafka did not receive all events of the table {table} in time")
            time.sleep(1)


def wait_for_lake(workspace: Workspace) -> None:
    for link in source_links(workspace):
        with link.connect() as connection:
            tables = read_source_tables(link.source, connection)
            wait_until_lake_holds(link, connection, tables, Patience.of(CATCH_UP_SECONDS))


def check_lake(workspace: Workspace) -> None:
    for link in source_links(workspace):
        found = reconcile(link, Patience.of(CATCH_UP_SECONDS))
        wrong = [str(table.name) for table in found.tables if not table.identical]
        if wrong or not found.tables:
            raise NoResult("The lake does not equal the database", found=", ".join(wrong) or "no table")


def pids_of(workspace: Workspace, workers: Workers) -> Mapping[str, int]:
    records = {name: read_process(name, workspace.state.run) for name in (*SERVICES, SPARK)}
    pids = {name: record.pid for name, record in records.items() if record is not None}
    drivers = [child.pid for child in psutil.Process(pids[SPARK]).children()]
    return {
        **pids,
        **({"spark driver in Python": max(drivers)} if drivers else {}),
        "workload": workers.workload.pid,
        "probe": workers.probe.pid,
        "benchmark": os.getpid(),
    }


def pids_of_services(workspace: Workspace, names: Iterable[str]) -> Mapping[str, int]:
    """Return the process of each service. Raise NoResult if one does not run."""
    records = {name: read_process(name, workspace.state.run) for name in names}
    pids = {name: record.pid for name, record in records.items() if record is not None}
    if missing := records.keys() - pids.keys():
        raise NoResult("A part does not run", found=f"no {', '.join(sorted(missing))}")
    return pids


def reported_freshness(commits: Sequence[Commit], of: Mapping[str, str] | None = None) -> Iterator[Figure]:
    """Yield p50 and p95 of all events as the app reported them, from those of their commits."""
    told = [(one.events, *one.freshness) for one in commits if one.freshness is not None]
    if not told:
        return
    for name, share, each in (
        ("p50", 0.5, [p50 for events, p50, _ in told for _ in range(events)]),
        ("p95", 0.95, [p95 for events, _, p95 in told for _ in range(events)]),
    ):
        yield Figure(f"freshness {name}", round(quantile(each, share), 2), "s", of or {})


@contextmanager
def _consumer(workspace: Workspace) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": workspace.settings.kafka_bootstrap,
            "group.id": "tributary-freshness",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _read_records(workspace: Workspace, tables: Iterable[str], began: float) -> Iterator[Record]:
    """Yield the probe rows that were sent to Kafka since `began`."""
    names = workspace.lake.source_names(workspace.lake.source(SOURCE))
    tables_by_topic = {names.topic(workload.SCHEMA, table): table for table in tables}
    with _consumer(workspace) as consumer:
        places = [TopicPartition(topic, 0, int(began * 1000)) for topic in tables_by_topic]
        consumer.assign(consumer.offsets_for_times(places, timeout=30))
        ended = 0
        while ended < len(places):
            for message in consumer.consume(10_000, timeout=0.5):
                if message.error() is not None:
                    ended += 1
                    continue
                key, topic, offset = message.key(), message.topic(), message.offset()
                if key is None or topic is None or offset is None or message.value() is None:
                    continue
                if (row := probe_key(key)) is not None:
                    yield Record(tables_by_topic[topic], row, message.timestamp()[1] / 1000, offset)


def probe_key(key: bytes) -> int | None:
    """Return a probe row's key from its event's key, or None if the row is not the probe's."""
    if b'"id":-' not in key:
        return None
    return int(json.loads(key)["payload"]["id"])


@dataclass(frozen=True)
class Way:
    """One row's path to the reader: the seconds of each stage, in order, and the total."""

    at: float
    stages: Mapping[str, float]
    readable: float
    read: float


def ways(observed: Observed) -> Sequence[Way]:
    """Return the paths of the probe rows that were committed during the measurement."""
    records = {(record.table, record.key): record for record in observed.records}
    found = []
    for sighting in observed.sightings:
        if not observed.began <= sighting.committing < observed.ended:
            continue
        record = records[sighting.table, sighting.key]
        commit = _commit_of(record, observed.commits)
        found.append(
            Way(
                sighting.committing - observed.began,
                {
                    "commit in the database": sighting.committed - sighting.committing,
                    "to Kafka": record.sent - sighting.committed,
                    "wait": commit.began - record.sent,
                    # A reader sees the commit a moment before the app reports it.
                    "commit in the lake": sighting.listed - commit.began,
                    "read": sighting.read - sighting.listed,
                },
                sighting.listed - sighting.committing,
                sighting.read - sighting.committing,
            )
        )
    return found


def _commit_of(record: Record, commits: Iterable[Commit]) -> Commit:
    return min(
        (commit for commit in commits if commit.table == record.table and commit.until > record.offset),
        key=lambda commit: commit.until,
    )


def results_of(observed: Observed, settings: Settings) -> Results:
    """Return the figures of the observations."""
    found = ways(observed)
    seconds = observed.ended - observed.began
    commits = [c for c in observed.commits if observed.began <= c.ended < observed.ended]
    changes = sum(n for second, n in observed.changes.items() if observed.began <= second < observed.ended)
    return Results(
        benchmark=settings.name,
        settings=asdict(settings),
        figures=(
            Figure("measured", round(seconds, 1), "s"),
            Figure("rows of the probe", len(found), "rows"),
            Figure("changes", round(changes / seconds, 1), "changes/s"),
            Figure("latest transaction", round(observed.latest_seconds, 3), "s"),
            *_quantiles("freshness", [way.read for way in found], {"until": "read"}),
            *_quantiles("freshness", [way.readable for way in found], {"until": "readable"}),
            *_stage_figures(found),
            *_commit_figures(commits, settings.changed, seconds),
            *_processor_figures(observed.processors),
        ),
        series={
            "freshness": tuple((round(way.at, 2), round(way.read, 3)) for way in found),
            **_commit_series(commits, observed.began),
        },
    )


def _quantiles(name: str, values: Sequence[float], of: Mapping[str, str]) -> Iterator[Figure]:
    for quantity, share in {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}.items():
        yield Figure(f"{name} {quantity}", round(quantile(values, share), 3), "s", of)


def _stage_figures(found: Sequence[Way]) -> Iterator[Figure]:
    for stage in found[0].stages:
        yield from _quantiles("stage", [way.stages[stage] for way in found], {"stage": stage})


def _commit_figures(commits: Sequence[Commit], tables: Sequence[str], seconds: float) -> Iterator[Figure]:
    small = [commit for commit in commits if commit.table in tables]
    yield Figure("commits", round(60 * len(small) / seconds, 1), "1/min")
    yield Figure("events of a commit p50", quantile([commit.events for commit in small], 0.5), "events")
    yield from _quantiles("commit", [commit.ended - commit.began for commit in small], {})
    fresh = [commit.freshness for commit in small if commit.freshness is not None]
    yield Figure("freshness p50 as reported p50", round(quantile([p50 for p50, _ in fresh], 0.5), 3), "s")
    yield Figure("freshness p95 as reported p95", round(quantile([p95 for _, p95 in fresh], 0.95), 3), "s")
    for phase in sorted({phase for commit in small for phase in commit.phases}):
        values = [commit.phases.get(phase, 0.0) for commit in small]
        yield from _quantiles("phase", values, {"phase": phase})


def _commit_series(commits: Sequence[Commit], began: float) -> Mapping[str, tuple[tuple[float, float], ...]]:
    tables = sorted({commit.table for commit in commits})
    return {
        f"commit {table}": tuple(
            (round(c.ended - began, 2), round(c.ended - c.began, 3)) for c in commits if c.table == table
        )
        for table in tables
    }


def _processor_figures(processors: ProcessorTimes) -> Iterator[Figure]:
    for name, share in processors.shares.items():
        yield Figure("processor", round(share, 3), "cores", {"process": name})
    for (name, kind), seconds in sorted(processors.threads.items(), key=lambda one: -one[1]):
        share = seconds / processors.wall_seconds
        if share >= _LEAST_SHARE:
            yield Figure("processor of threads", round(share, 3), "cores", {"process": name, "threads": kind})


_LEAST_SHARE = 0.01
"""The share of a core below which threads are left out."""
