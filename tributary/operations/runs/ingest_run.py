"""A run of the packaged Spark app: its arguments, its reports and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from rich.console import Console

from spark_app.reports import StepsChosen
from tributary.artifacts.java import find_java
from tributary.artifacts.progress import shown_on
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName
from tributary.local import apicurio
from tributary.local.process import read_log_tail
from tributary.local.schema_registry import registry_arguments
from tributary.local.spark import DERIVE_SERVICE, SERVICE, RunningSpark, SparkInstallation, start_spark
from tributary.local.spark_jars import spark_jars
from tributary.local.state import StateFolder
from tributary.operations.runs.packaging import build_package, unpack_package
from tributary.operations.runs.run_progress import RunProgress, parse_report
from tributary.operations.workspace import Workspace

FILES = "files:"
AWAIT_CHECKS = "--await-checks"
"""The app's option for a run beside which somebody looks at the sources' catalogs (`SnapshotKeeper`)."""

Command = Literal["ingest", "replay", "rebuild", "new-epoch", "erase", "maintain", "delete-events", "derive"]

_APP_FAILED_FOR_SOME_TABLE = 1


class IngestFailed(TributaryError):
    """The Spark app failed, or a table did."""


class IngestRun:
    """The running app. `progress` is what it has reported so far, and any thread may read it."""

    def __init__(
        self, running: RunningSpark, state: StateFolder, console: Console, on_line: Callable[[str], None]
    ) -> None:
        self.progress = RunProgress()
        self._running = running
        self._state = state
        self._console = console
        self._on_line = on_line
        # Not Thread.join: after a Ctrl-C in it, Python 3.11 considers a running thread ended.
        self._has_ended = threading.Event()
        threading.Thread(target=self._read_reports, name="app reports", daemon=True).start()

    def is_over(self, wait_seconds: float = 0.0) -> bool:
        """Wait up to this many seconds, and tell whether the app has ended."""
        return self._has_ended.wait(wait_seconds)

    def ask_to_stop(self) -> None:
        """Ask the app to finish its current commits. Then `wait` for its end."""
        self._running.ask_to_stop()

    def kill(self) -> None:
        """End the app even in the middle of a commit. The next run resumes from what the tables hold."""
        self._running.kill()
        self.end()

    def end(self) -> int:
        """Wait for the app's end, and return its exit status. Without this, the app counts as died."""
        self._has_ended.wait()
        return self._running.wait()

    def wait(self) -> None:
        """Return when the app has ended without errors. Raises `IngestFailed` if it or a table failed."""
        status = self.end()
        failures = self.progress.failures
        if status == 0 and not failures:
            return
        if failures and status in (0, _APP_FAILED_FOR_SOME_TABLE):
            raise IngestFailed(
                f"{len(failures)} of {len(self.progress.tables)} tables could not be brought up to date",
                found="; ".join(f"{name}: {error}" for name, error in sorted(failures.items())),
                remedy=f"The other tables have no errors. See {self._running.log} for more.",
            )
        raise IngestFailed(
            f"The Spark app ended with status {status}",
            where=str(self._running.log),
            found=read_log_tail(self._running.log),
        )

    def _read_reports(self) -> None:
        try:
            for line in self._running.reports():
                self._pass_on(line)
                report = parse_report(line)
                if isinstance(report, StepsChosen) and report.steps == "plain":
                    self._console.print(f"The Spark app runs in plain PySpark: {report.reason}")
                if report is not None:
                    self.progress = self.progress.after(report)
        finally:
            self._has_ended.set()

    def _pass_on(self, line: str) -> None:
        try:
            self._on_line(line)
        except BrokenPipeError:
            # If nobody reads the lines anymore, still drain the app's output, or the app would block.
            self._on_line = _say_nothing
            self.ask_to_stop()


def _say_nothing(_line: str) -> None:
    pass


def start_ingest(
    workspace: Workspace,
    console: Console,
    command: Command = "ingest",
    events_from: str = "kafka",
    tables: Sequence[TableName] = (),
    *,
    follow: bool = False,
    on_line: Callable[[str], None] | None = None,
    options: Sequence[str] = (),
) -> IngestRun:
    """Start the app on the running pipeline. Without tables, it takes all tables of the lake.

    `events_from` is kafka, bronze or files:URI. `options` are more arguments of the app. `on_line` gets each
    line that the app reports. The console shows the progress of fetching missing files. Raises PipelineDown,
    SparkBusy, FetchError and the errors of finding a Java.
    """
    of_registry = (apicurio.SERVICE,) if workspace.lake.has_registry_here else ()
    workspace.require("s3", *of_registry, *_servers_of(events_from, workspace.lake))
    arguments = [
        *app_arguments(workspace, command, events_from, tables, follow=follow),
        *options,
    ]
    installation = read_installation(console)
    service = DERIVE_SERVICE if command == "derive" else SERVICE
    running = start_spark(
        workspace.lake, workspace.state, workspace.settings, installation, arguments, service
    )
    return IngestRun(running, workspace.state, console, on_line or _say_nothing)


def app_arguments(
    workspace: Workspace, command: Command, events_from: str, tables: Sequence[TableName], *, follow: bool
) -> list[str]:
    """Return the arguments of spark_app/main.py."""
    names = workspace.lake.names
    return [
        command,
        *("--lake", str(workspace.lake_file.absolute())),
        *("--from", events_from),
        *("--kafka", workspace.settings.kafka_bootstrap),
        *("--bronze-table", names.spark_bronze_table),
        *("--silver", f"s3a://{names.silver_bucket}"),
        *("--quarantine", f"s3a://{names.quarantine_bucket}"),
        "--pinned-jars",
        *(argument for table in tables for argument in ("--tables", str(table))),
        *(["--follow"] if follow else []),
        *registry_arguments(workspace.lake, workspace.settings),
    ]


def read_installation(console: Console) -> SparkInstallation:
    """Return what Spark needs on this machine: Java, the pinned jars, and the same package as for EMR."""
    with shown_on(console) as progress:
        jars = spark_jars(progress)
    return SparkInstallation(java_home=find_java().home, jars=jars, package=unpack_package(build_package()))


def _servers_of(events_from: str, lake: Lake) -> tuple[str, ...]:
    if events_from.startswith(FILES):
        return ()
    # Bronze's catalog is in the local PostgreSQL. Records of a stream of items land in bronze first.
    needs_bronze = events_from != "kafka" or bool(lake.item_sources)
    needs_kafka = events_from == "kafka" and bool(lake.connected_sources)
    return (*(("kafka",) if needs_kafka else ()), *(("postgres",) if needs_bronze else ()))
