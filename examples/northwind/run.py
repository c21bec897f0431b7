"""The course of the example: a shop's database becomes a lake and trades, and its events tell the revenue."""

from __future__ import annotations

import argparse
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from examples.ends import print_times, print_what_runs
from examples.northwind.database import apply_change, write_shop
from examples.northwind.shop import Shop, generate, trade
from examples.options import number, run_example, whole
from tributary.cli.demo_steps import (
    Phases,
    following,
    meanwhile,
    prepare_state_folder,
    reconcile_all,
    wait_until_lake_holds_all,
)
from tributary.cli.live_view import live_view
from tributary.cli.reconcile_view import print_findings
from tributary.cli.rendering import output, print_answer
from tributary.cli.startup_view import start_pipeline
from tributary.contract.boards.views import View, with_views
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down
from tributary.operations.workspace import Workspace

FOLDER = Path(__file__).parent
ORDER_ITEMS = FOLDER / "order_items.duckdb.sql"
ROUTED = FOLDER / "router" / "cdc_events.sql"
QUESTIONS = {
    "What does the newest event of an order say? Its first item is:": """SELECT type, aggregateid AS "order",
        json_array_length(payload, '$.items') AS items, json_extract(payload, '$.items[0]') AS "first item"
        FROM cdc_events WHERE aggregatetype = 'order' ORDER BY id DESC LIMIT 1""",
    "How many events of each type are there?": """SELECT type, count(*) AS events FROM cdc_events
        GROUP BY ALL ORDER BY type""",
    "Which products bring the most revenue, according to the events?": f"""SELECT product, category,
        sum(quantity) AS quantity, round(sum(revenue), 2) AS revenue FROM ({ORDER_ITEMS.read_text()})
        GROUP BY ALL ORDER BY revenue DESC LIMIT 5""",
}


def main() -> None:
    """Run the example. The exit status is 0 only if the lake and the database are identical."""
    options = _options()
    workspace = Workspace.open(options.lake, options.state)
    shop, phases = generate(options.seed, orders=options.orders), Phases(output)
    prepare_state_folder(workspace)
    try:
        with phases.phase("Starting PostgreSQL, Kafka, Kafka Connect and S3, and loading the shop"):
            start_pipeline(workspace, output, seed=partial(_load, shop))
        with following(workspace, output) as run, live_view(output) as show:
            with phases.phase("Ingesting the snapshot"):
                meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
            with phases.phase(f"Trading: {options.transactions} transactions while the app follows"):
                meanwhile(partial(_trade, workspace, shop, options), run, show)
                meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
        with phases.phase("Asking the lake"):
            _ask(workspace)
        with phases.phase("Reconciling every table with the database"):
            reconciliation = reconcile_all(workspace)
        print_findings(reconciliation)
    finally:
        if not options.keep_running:
            with phases.phase("Stopping"):
                down(workspace.state)
    print_times(phases)
    if options.keep_running:
        print_what_runs(options.lake, options.state)
    if not reconciliation.identical:
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lake",
        type=Path,
        default=Path("examples/northwind/lake.toml"),
        help="the lake file; router/lake.toml lets Debezium route the events",
    )
    parser.add_argument("--state", type=Path, default=Path(".tributary-northwind"), help="the state folder")
    parser.add_argument(
        "--orders", type=whole(20, 100_000), default=400, help="how many orders there are before the trade"
    )
    parser.add_argument(
        "--transactions", type=whole(0, 100_000), default=200, help="how many transactions the trade has"
    )
    parser.add_argument("--rate", type=number(0.1, 1000), default=20, help="transactions per second")
    parser.add_argument(
        "--seed", type=whole(0, 1_000_000), default=1, help="another seed gives another shop and trade"
    )
    parser.add_argument("--keep-running", action="store_true", help="keep the servers running at the end")
    return parser.parse_args()


def _load(shop: Shop, _: Source, connection: psycopg.Connection[Any]) -> None:
    write_shop(connection, shop)
    output.print(f"  {len(shop.orders)} orders of {len(shop.customers)} customers loaded", highlight=False)


def _trade(workspace: Workspace, shop: Shop, options: argparse.Namespace, stop: threading.Event) -> None:
    (source,) = workspace.lake.sources
    database = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)
    with database.connect() as connection:
        for change in trade(shop, options.transactions, options.seed):
            if stop.is_set():
                return
            apply_change(connection, change)
            time.sleep(1 / options.rate)


def events_of(workspace: Workspace) -> tuple[View, ...]:
    """Return what stands for the table `cdc_events` if the connector routes its events to several tables."""
    (source,) = workspace.lake.sources
    return () if source.routed_events is None else (View("cdc_events", str(ROUTED), ROUTED.read_text()),)


def _ask(workspace: Workspace) -> None:
    for question, sql in QUESTIONS.items():
        output.print(f"\n{question}", style="italic", highlight=False)
        print_answer(workspace.open_lake.sql(with_views(sql, events_of(workspace))))


if __name__ == "__main__":
    run_example(main)
