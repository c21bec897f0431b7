"""A whole pipeline under fault injection: transactions in the database, and an ingest that follows."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg
from rich.console import Console

from tests.cli.random_transactions import MORE_OF_THE_LAKE_FILE, create_tables, transact
from tests.cli.test_whole_pipeline import Tributary, s3_of
from tests.faults.injected import Harm, Injected
from tests.faults.processes import family_of, kill_family, paused_family
from tests.faults.s3_faults import FaultyS3, faulty_s3
from tests.local.landed import PATIENCE_SECONDS, wait_until
from tests.soak import SOAKS
from tributary.contract.errors import TributaryError
from tributary.local import spark
from tributary.local.databases import DatabaseUnreachable
from tributary.local.pipeline import down
from tributary.local.state import LocalSettings, StateFolder, choose_ports
from tributary.operations.kafka_topics import read_topic_ends
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun, start_ingest
from tributary.operations.workspace import Workspace

LAKE = f"""
[lake]
name = "faults"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
{MORE_OF_THE_LAKE_FILE}
"""
# Enough for some transactions in each commit, and not so many that the tables never rest.
_SECONDS_BETWEEN_TRANSACTIONS = 0.3 if SOAKS else 1.0


@dataclass(frozen=True)
class _ThroughProxy(Workspace):
    """The workspace of an app that reaches the S3 server through a proxy."""

    s3_port: int = 0

    @cached_property
    def settings(self) -> LocalSettings:
        settings = super().settings
        return settings.model_copy(update={"ports": settings.ports.model_copy(update={"s3": self.s3_port})})


@dataclass
class Pipeline:
    """A running pipeline. `faults` is between the app and the S3 server; no other process uses it.

    `quarantined` is the expected number of events in quarantine.
    """

    tributary: Tributary
    faults: FaultyS3
    injected: list[Injected]
    quarantined: int = 0
    _ingest: IngestRun | None = None
    _marks: int = 0
    _recovered: tuple[str, float] | None = None

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.tributary.state)

    def follow(self) -> None:
        """Start an ingest that follows, if none is running."""
        if self._ingest is None or self._ingest.is_over():
            own = self.tributary.workspace
            workspace = _ThroughProxy(own.lake_file, own.lake, own.state, self.faults.port)
            self._ingest = start_ingest(workspace, Console(quiet=True), follow=True)

    def end_ingest(self) -> None:
        if self._ingest is not None:
            self._ingest.kill()

    def processes(self, name: str) -> list[psutil.Process]:
        """Return the running server or app with this name, and all its children."""
        return family_of(name, self.state)

    def kill(self, process: str) -> None:
        """Kill the process and all its children with SIGKILL. Return when they are gone."""
        kill_family(process, self.state)
        if process == spark.SERVICE and self._ingest is not None:
            with suppress(IngestFailed):
                self._ingest.wait()

    @contextmanager
    def paused(self, process: str) -> Iterator[None]:
        """Pause the process and all its children with SIGSTOP, and resume them with SIGCONT."""
        with paused_family(process, self.state):
            yield

    @contextmanager
    def recovery(self, fault: str) -> Iterator[None]:
        """Measure from the end of the fault until the lake resumes. The next check finds its damage."""
        began = time.monotonic()
        yield
        self._recovered = fault, time.monotonic() - began

    def repair(self) -> None:
        """Do what a person does who finds a dead process."""
        self.tributary.run("up")
        self.faults.server_port = self.tributary.workspace.settings.ports.s3
        self.follow()

    def add_table(self, *statements: str) -> None:
        """Create and fill a table with the SQL. Later commits reach the lake as changes."""
        with self.tributary.connect() as database:
            for statement in statements:
                database.execute(statement.encode())
        self.tributary.run("up")
        self.wait_for_mark()

    def wait_for_mark(self) -> float:
        """Commit a row, and return the seconds until it was in the lake."""
        self._marks += 1
        began = time.monotonic()
        with self.tributary.connect() as connection:
            connection.execute("INSERT INTO marks VALUES (%s)", [self._marks])
        while self._marks not in (found := self._marks_in_lake()):
            if time.monotonic() > began + PATIENCE_SECONDS:
                raise AssertionError(f"mark {self._marks} is not in the lake, but {found}")
            time.sleep(1)
        return time.monotonic() - began

    def wait_for_quarantine(self) -> Sequence[Mapping[str, Any]]:
        """Return the events in quarantine, once there are any. A mark is no proof: it is in another table."""
        wait_until(self._quarantine, "event in quarantine")
        return self._quarantine()

    def wait_for_failure(self, remedy: str) -> None:
        """Return once `status` reports a failed connector with this remedy."""
        wait_until(
            lambda: any(remedy in (one["remedy"] or "") for one in self._connectors()),
            f"connector that asks for {remedy}",
        )

    def _quarantine(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.tributary.json("quarantine", "list")
        return found

    def _connectors(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.tributary.json("status", status=None)["connectors"]
        return found

    def events(self, table: str) -> int:
        """Return the number of events that the table's topic has had."""
        workspace = self.tributary.workspace
        (source,) = workspace.lake.sources
        topic = workspace.lake.source_names(source).topic("public", table)
        return sum(read_topic_ends(workspace.kafka, {topic})[topic].values())

    def objects(self, bucket: str) -> frozenset[str]:
        """Return the keys in the bucket."""
        pages = s3_of(self.tributary).get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return frozenset(found["Key"] for page in pages for found in page.get("Contents", []))

    def check(self) -> None:
        """Check that the lake equals the database, row by row, once it has everything that was sent."""
        found = self.tributary.json("reconcile", "--wait", "600", status=None)
        if self._recovered is not None:
            self.injected.append(Injected(*self._recovered, _harm(found)))
            self._recovered = None
        assert found["identical"], found
        assert len(self._quarantine()) == self.quarantined

    def _marks_in_lake(self) -> Sequence[int | str]:
        """Return the marks in the lake, or the reason why there are none."""
        try:
            marks = self.tributary.workspace.open_lake.sql("SELECT id FROM marks")
            return [row["id"] for row in marks.to_pylist()]
        except TributaryError as error:
            return [str(error)]


@dataclass
class Transactions:
    """Random transactions at a steady rate, as long as the database accepts them."""

    tributary: Tributary
    chance: random.Random
    done: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._stop.is_set():
            # A transaction that the database loses at its end was never confirmed to anybody.
            with suppress(psycopg.OperationalError, DatabaseUnreachable):
                self._transact_until_stopped()
            self._stop.wait(0.2)

    def _transact_until_stopped(self) -> None:
        with self.tributary.connect() as database:
            while not self._stop.wait(_SECONDS_BETWEEN_TRANSACTIONS):
                transact(database, self.chance, evolves=self.chance.random() < 0.02)
                self.done += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run, name="transactions")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._stop.clear()


def _harm(found: Mapping[str, Any]) -> Harm:
    """Return the harm that `reconcile` reports."""
    kinds = [one["kind"] for table in found["tables"] for one in table["differences"]]
    lost = sum(kind in ("missing", "changed") for kind in kinds)
    return Harm(lost, len(kinds) - lost)


@contextmanager
def whole_pipeline(folder: Path, injected: list[Injected]) -> Iterator[Pipeline]:
    """Start a pipeline whose tables are empty, except for what `Transactions` writes."""
    tributary = Tributary(folder / "lake.toml", folder / "state")
    tributary.lake_file.write_text(LAKE)
    try:
        tributary.run("up")
        with tributary.connect() as database:
            create_tables(database)
            database.execute("CREATE TABLE marks (id int PRIMARY KEY)")
        free_port = choose_ports({}, None, frozenset()).s3
        with faulty_s3(free_port, tributary.workspace.settings.ports.s3) as faults:
            pipeline = Pipeline(tributary, faults, injected)
            try:
                yield pipeline
            finally:
                pipeline.end_ingest()
    finally:
        down(StateFolder(tributary.state))
