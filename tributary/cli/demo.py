"""The course of the demo: turn a shop's database into a lake, let it trade, and compare it with the lake."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rich.console import Console

from tributary.cli.demo_steps import (
    DemoImpossible,
    DemoOutcome,
    Phases,
    following,
    meanwhile,
    reconcile_all,
    wait_until_lake_holds_all,
)
from tributary.cli.live_view import live_view
from tributary.cli.startup_view import start_pipeline
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import Seed
from tributary.local.status import read_status
from tributary.operations.keeping import in_a_thread
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace
from tributary.tickit.generator import generate
from tributary.tickit.load import is_loaded, write_tickit
from tributary.tickit.schema import SCHEMA, TABLES
from tributary.tickit.statements import shop_errors
from tributary.tickit.workload import Plan, Summary, apply_workload

LAKE_FILE = "demo-lake.toml"

TRANSACTIONS_A_SECOND = 5.0
"""How fast the shop trades while somebody looks at it: enough to see it move, and little work."""
LISTINGS_OF_PEOPLE = 10
"""The first listings, which only people change while the shop trades: the tour follows one of them."""
_SECONDS_TO_RETRY = 5.0


@dataclass(frozen=True)
class DemoPlan:
    """The size of the shop, and its trade."""

    scale: float
    workload: Plan


def run_demo(
    workspace: Workspace, plan: DemoPlan, phases: Phases, ask_lake: Callable[[], None]
) -> DemoOutcome:
    """Run the demo on a pipeline that is not up yet, and leave it up. The Spark app is stopped in any case.

    `ask_lake` is called once everything is in the lake.
    """
    with phases.phase("Starting PostgreSQL, Kafka, Kafka Connect and S3, and loading the shop's database"):
        start_pipeline(workspace, phases.console, seed=load_shop(plan.scale, phases.console))
    with following(workspace, phases.console) as run, live_view(phases.console) as show:
        with phases.phase("Ingesting the snapshot"):
            meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
        with phases.phase(f"Trading: {plan.workload.transactions:,} transactions while the app follows"):
            workload = meanwhile(partial(_trade, workspace, plan.workload), run, show)
            meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
        resident_bytes = read_status(workspace.state).resident_bytes
    with phases.phase("Asking the lake"):
        ask_lake()
    with phases.phase("Reconciling every table with the database"):
        reconciliation = reconcile_all(workspace)
    return DemoOutcome(run.progress, workload, resident_bytes, reconciliation)


def check_lake(lake: Lake) -> None:
    """Raise `DemoImpossible` if the demo cannot fill the sources of the lake."""
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


def load_shop(scale: float, console: Console) -> Seed:
    """Return what fills the shop's database at the pipeline's start, unless it is filled already."""

    def load(_: Source, connection: Any) -> None:
        if not is_loaded(connection):
            started = time.monotonic()
            rows = write_tickit(connection, generate(scale))
            seconds = time.monotonic() - started
            console.print(
                f"  {rows:,} rows loaded into {connection.info.dbname} in {seconds:.1f} s", highlight=False
            )

    return load


def _trade(
    workspace: Workspace,
    plan: Plan,
    stop: threading.Event,
    progress: Callable[[str, int], None] = lambda *_: None,
) -> Summary:
    with shop_database(workspace).connect() as connection:
        return apply_workload(connection, plan, progress, stop)


def shop_database(workspace: Workspace) -> SourceDatabase:
    """Return the database of a lake that `check_lake` accepts."""
    (source,) = workspace.lake.sources
    return SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)


@contextmanager
def trading(workspace: Workspace, tell: Callable[[str], None]) -> Iterator[None]:
    """Let the shop trade in a thread as long as the context lasts: ordinary transactions only.

    If the database fails, the thread tells so once, and tries again until it works.
    """
    stop, fails = threading.Event(), threading.Event()

    def trade() -> None:
        # The rare transactions come after a share of the plan, so in an endless plan they never come.
        plan = Plan(sys.maxsize, TRANSACTIONS_A_SECOND, spared_listings=LISTINGS_OF_PEOPLE)
        while not stop.is_set():
            try:
                with shop_errors():
                    _trade(workspace, plan, stop, lambda *_: fails.clear())
            except TributaryError as error:
                if not fails.is_set():
                    tell(f"The shop does not trade now: {error.text(remedy_words)}")
                fails.set()
                plan = replace(plan, seed=plan.seed + 1)
                stop.wait(_SECONDS_TO_RETRY)

    with in_a_thread(trade, stop, "trade"):
        yield
