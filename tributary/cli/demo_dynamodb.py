"""The course of the demo with DynamoDB: customers sign up, buy, move and leave, and the lake follows."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from tributary.cli.demo_steps import (
    CATCH_UP_SECONDS,
    DemoImpossible,
    DemoOutcome,
    Phases,
    following,
    meanwhile,
    reconcile_all,
)
from tributary.cli.live_view import live_view
from tributary.cli.startup_view import start_pipeline
from tributary.contract.item_stream import ITEM_SCHEMA
from tributary.contract.lake import Lake
from tributary.local.dynamodb import dynamodb_client
from tributary.local.status import read_status
from tributary.operations.whole_lake import reconcile_lake
from tributary.operations.workspace import Workspace
from tributary.tickit.customers import TABLE, Customers
from tributary.tickit.workload import Plan

LAKE_FILE = "demo-dynamodb-lake.toml"


@dataclass(frozen=True)
class DemoPlan:
    """How many customers there are at first, and the changes after them."""

    customers: int
    workload: Plan


def check_lake(lake: Lake) -> None:
    """Raise `DemoImpossible` if the lake has other sources than the demo fills."""
    match lake.sources:
        case (source,) if source.matches(ITEM_SCHEMA, TABLE) and source.item_stream is not None:
            stream = source.item_stream
            if stream.stream_endpoint is None and stream.database_endpoint is None:
                return
    raise DemoImpossible(
        "The demo fills a DynamoDB of its own, and this lake file does not describe it",
        found=", ".join(source.name for source in lake.sources),
        expected=f"one source of the engine dynamodb without endpoints, that takes the table {TABLE}",
        remedy="Run the demo in an empty folder, where it writes the lake file that it needs.",
    )


def run_demo(
    workspace: Workspace, plan: DemoPlan, phases: Phases, ask_lake: Callable[[], None]
) -> DemoOutcome:
    """Run the demo on a pipeline that is not up yet, and leave it up. The Spark app is stopped in any case.

    `ask_lake` is called once everything is in the lake.
    """
    with phases.phase("Starting DynamoDB, Kinesis and S3"):
        start_pipeline(workspace, phases.console)
    customers = Customers(_dynamodb(workspace), random.Random(plan.workload.seed))
    with phases.phase(f"Creating the table {TABLE} with {plan.customers:,} items"):
        customers.create(plan.customers)
    with following(workspace, phases.console) as run, live_view(phases.console) as show:
        with phases.phase("Reading all items"):
            meanwhile(partial(_wait_until_equal, workspace), run, show)
        trade_began = datetime.now(UTC)
        changes = f"{plan.workload.transactions:,} changes"
        with phases.phase(f"Trading: {changes} while the app follows, with records late and twice"):
            workload = meanwhile(partial(customers.trade, plan.workload), run, show)
            meanwhile(partial(_wait_until_equal, workspace), run, show)
        resident_bytes = read_status(workspace.state).resident_bytes
    with phases.phase("Asking the lake"):
        ask_lake()
    with phases.phase("Reconciling every item with its row"):
        reconciliation = reconcile_all(workspace)
    # The first items waited for the start of the app.
    progress = run.progress.since(trade_began)
    return DemoOutcome(progress, workload, resident_bytes, reconciliation)


def _dynamodb(workspace: Workspace) -> object:
    (source,) = workspace.lake.sources
    assert source.item_stream is not None, "the lake was checked"
    region = source.item_stream.region_of_stream
    endpoint = workspace.settings.dynamodb_endpoint
    return dynamodb_client(endpoint) if region is None else dynamodb_client(endpoint, region)


def _wait_until_equal(workspace: Workspace, stop: threading.Event) -> None:
    """Return when the lake equals the database, or after a while. The demo compares both at its end."""
    reconcile_lake(workspace, CATCH_UP_SECONDS, stop=stop)
