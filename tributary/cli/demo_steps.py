"""The steps that all demos share: their state folder, and what they do while the app follows."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from rich.console import Console

from tributary.cli.live_view import Show
from tributary.cli.run_watch import stop_run
from tributary.contract.errors import TributaryError
from tributary.local.pipeline import down
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.proof import (
    Reconciliation,
    read_source_tables,
    wait_until_lake_holds,
)
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun, start_ingest
from tributary.operations.runs.run_progress import RunProgress
from tributary.operations.source_links import source_links
from tributary.operations.whole_lake import reconcile_lake
from tributary.operations.workspace import Workspace
from tributary.tickit.workload import Summary

Result = TypeVar("Result")

CATCH_UP_SECONDS = 300.0
_MARK = "demo"
_SECONDS_BETWEEN_LOOKS = 0.25


class DemoImpossible(TributaryError):
    """The demo would have to touch something that is not its own."""


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
    """The app's progress, the shop's trade, and the comparison of the lake with its databases.

    `resident_bytes` is the memory of all processes at the end of the trade.
    """

    progress: RunProgress
    workload: Summary
    resident_bytes: int
    reconciliation: Reconciliation


def write_lake_file(template: str, path: Path) -> None:
    """Write a demo's lake file, which lies beside this module, to `path`."""
    shutil.copyfile(Path(__file__).with_name(template), path)


def prepare_state_folder(workspace: Workspace) -> None:
    """Give a demo an empty state folder: stop and remove what an earlier demo left there.

    Raises `DemoImpossible` if the folder holds anything else.
    """
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


@contextmanager
def following(
    workspace: Workspace, console: Console, command: Literal["ingest", "derive"] = "ingest"
) -> Iterator[IngestRun]:
    """Let the app follow its inputs as long as the context lasts. Raises `IngestFailed` if it fails."""
    run = start_ingest(workspace, console, command, follow=True)
    try:
        yield run
    finally:
        stop_run(run)
    run.wait()


def meanwhile(work: Callable[[threading.Event], Result], run: IngestRun, show: Show) -> Result:
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


def wait_until_lake_holds_all(workspace: Workspace, stop: threading.Event) -> None:
    """Return when the lake holds all that was committed to its sources. Raises `LakeBehind`."""
    patience = Patience.of(CATCH_UP_SECONDS, stop=stop)
    for link in source_links(workspace):
        with link.connect() as connection:
            tables = read_source_tables(link.source, connection)
            wait_until_lake_holds(link, connection, tables, patience)


def reconcile_all(workspace: Workspace) -> Reconciliation:
    """Compare every table of every source with the lake. Raises `LakeBehind`."""
    return reconcile_lake(workspace, CATCH_UP_SECONDS)
