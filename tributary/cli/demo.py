"""The course of the demo: turn a shop's database into a lake, let it trade, and compare it with the lake."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from tributary.cli.live_view import Show, live_view
from tributary.cli.run_watch import stop_run
from tributary.cli.startup_view import start_pipeline
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import Seed, down
from tributary.local.status import read_status
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.proof import (
    Reconciliation,
    read_source_tables,
    reconcile,
    wait_until_lake_holds,
)
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun, start_ingest
from tributary.operations.runs.run_progress import RunProgress
from tributary.operations.source_links import source_links
from tributary.operations.workspace import Workspace
from tributary.tickit.generator import generate
from tributary.tickit.load import is_loaded, write_tickit
from tributary.tickit.schema import SCHEMA, TABLES
from tributary.tickit.workload import Plan, Summary, apply_workload

Result = TypeVar("Result")

CATCH_UP_SECONDS = 300.0
_LAKE_FILE = Path(__file__).with_name("demo-lake.toml")
_MARK = "demo"
_SECONDS_BETWEEN_LOOKS = 0.25


class DemoImpossible(TributaryError):
    """The demo would have to touch something that is not its own."""


@dataclass(frozen=True)
class DemoPlan:
    """The size of the shop, and its trade."""

    scale: float
    workload: Plan


@dataclass
class Phases:
    """The finished phases of the demo, with their seconds."""

    console: Console
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce the phase. Its time counts only once it is done."""
        self.console.print(f"\n[bold]{name}[/bold]", highlight=False, soft_wrap=True)
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started


@dataclass(frozen=True)
class DemoOutcome:
    """The app's progress, the shop's trade, and the comparison of the lake with the database.

    `resident_bytes` is the memory of all processes at the end of the trade.
    """

    progress: RunProgress
    workload: Summary
    resident_bytes: int
    reconciliation: Reconciliation


def write_lake_file(path: Path) -> None:
    """Write the lake file of the demo to `path`."""
    shutil.copyfile(_LAKE_FILE, path)


def prepare_state_folder(workspace: Workspace) -> None:
    """Give the demo an empty state folder: stop and remove what an earlier demo left there.

    Raises `DemoImpossible` if the folder holds anything else, or belongs to another lake.
    """
    _check_that_lake_is_the_demo_s(workspace.lake)
    folder = workspace.state.path
    mark = folder / _MARK
    if folder.exists() and any(folder.iterdir()):
        if not mark.exists():
            raise DemoImpossible(
                "The demo needs an empty state folder, but this one is in use",
                where=str(folder),
                expected="a folder that is empty, does not exist yet, or comes from an earlier demo",
                remedy="Name another one with --state.",
            )
        down(workspace.state)
        shutil.rmtree(folder)
    workspace.state.create()
    mark.touch()


def run_demo(
    workspace: Workspace, plan: DemoPlan, phases: Phases, ask_lake: Callable[[], None]
) -> DemoOutcome:
    """Run the demo on a pipeline that is not up yet, and leave it up. The Spark app is stopped in any case.

    `ask_lake` is called once everything is in the lake.
    """
    with phases.phase("Starting PostgreSQL, Kafka, Kafka Connect and S3, and loading the shop's database"):
        start_pipeline(workspace, phases.console, seed=_seed(plan, phases.console))
    with _following(workspace, phases.console) as run, live_view(phases.console) as show:
        with phases.phase("Ingesting the snapshot"):
            _meanwhile(partial(_wait_until_lake_holds_all, workspace), run, show)
        with phases.phase(f"Trading: {plan.workload.transactions:,} transactions while the app follows"):
            workload = _meanwhile(partial(_trade, workspace, plan.workload), run, show)
            _meanwhile(partial(_wait_until_lake_holds_all, workspace), run, show)
        resident_bytes = read_status(workspace.state).resident_bytes
    with phases.phase("Asking the lake"):
        ask_lake()
    with phases.phase("Reconciling every table with the database"):
        proofs = [reconcile(link, Patience.of(CATCH_UP_SECONDS)) for link in source_links(workspace)]
    tables = tuple(table for proof in proofs for table in proof.tables)
    return DemoOutcome(run.progress, workload, resident_bytes, Reconciliation(tables))


def _check_that_lake_is_the_demo_s(lake: Lake) -> None:
    tables = (f"{SCHEMA}.{table.name}" for table in TABLES)
    match lake.sources:
        case (Source(connection=None) as source,) if all(
            source.matches(SCHEMA, table.name) for table in TABLES
        ):
            return
    raise DemoImpossible(
        "The demo loads a database of its own, and this lake file does not describe it",
        found=", ".join(source.name for source in lake.sources),
        expected=f"one source without a connection, that takes {', '.join(tables)}",
        remedy="Run the demo in an empty folder, where it writes the lake file that it needs.",
    )


def _seed(plan: DemoPlan, console: Console) -> Seed:
    def load(_: Source, connection: Any) -> None:
        if not is_loaded(connection):
            started = time.monotonic()
            rows = write_tickit(connection, generate(plan.scale))
            seconds = time.monotonic() - started
            console.print(
                f"  {rows:,} rows loaded into {connection.info.dbname} in {seconds:.1f} s", highlight=False
            )

    return load


@contextmanager
def _following(workspace: Workspace, console: Console) -> Iterator[IngestRun]:
    """Let the app follow Kafka as long as the context lasts. Raises `IngestFailed` if it fails."""
    run = start_ingest(workspace, console, follow=True)
    try:
        yield run
    finally:
        stop_run(run)
    run.wait()


def _meanwhile(work: Callable[[threading.Event], Result], run: IngestRun, show: Show) -> Result:
    """Return the result of the work, and show the run until then.

    The work gets an event, which is set if nobody waits for the work anymore. Raises `IngestFailed` if the
    run ends first, or if a table fails.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work, stop)
        try:
            while not future.done():
                show(run.progress)
                if run.is_over(_SECONDS_BETWEEN_LOOKS):
                    run.wait()
                    raise IngestFailed("The Spark app ended before the demo did")
                _check_that_no_table_is_blocked(run.progress)
            show(run.progress)
        finally:
            stop.set()
        return future.result()


def _check_that_no_table_is_blocked(progress: RunProgress) -> None:
    for name, table in progress.tables.items():
        if table.state == "blocked":
            raise IngestFailed(f"The table {name} cannot continue", found=table.failure)


def _wait_until_lake_holds_all(workspace: Workspace, stop: threading.Event) -> None:
    patience = Patience.of(CATCH_UP_SECONDS, stop=stop)
    for link in source_links(workspace):
        with link.connect() as connection:
            tables = read_source_tables(link.source, connection)
            wait_until_lake_holds(link, connection, tables, patience)


def _trade(workspace: Workspace, plan: Plan, stop: threading.Event) -> Summary:
    (source,) = workspace.lake.sources
    database = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)
    with database.connect() as connection:
        return apply_workload(connection, plan, stop=stop)
