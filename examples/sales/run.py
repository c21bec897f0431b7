"""The course of the example: totals of a known file, then a trade that six derived tables follow."""

from __future__ import annotations

import argparse
import csv
import threading
import time
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from examples.ends import print_times, print_what_runs
from examples.options import number, run_example
from examples.sales.database import change_stock, write_shop
from examples.sales.settings import add_settings, rates_of
from examples.sales.shop import Event, Restocked, known_purchases, late_purchases, trade
from examples.sales.topics import create_topics, kafka_topic, sending
from tributary.api.tables import UnknownTable
from tributary.cli.demo_steps import (
    CATCH_UP_SECONDS,
    Phases,
    following,
    meanwhile,
    prepare_state_folder,
)
from tributary.cli.live_view import live_view
from tributary.cli.rendering import output, print_answer
from tributary.cli.run_watch import print_dropped, watch_run
from tributary.cli.startup_view import start_pipeline
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down
from tributary.operations.kafka_wait import wait_until_kafka_holds_all
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.runs.ingest_run import Command, start_ingest
from tributary.operations.workspace import Workspace

FOLDER = Path(__file__).parent
KNOWN_TOTALS = FOLDER / "known" / "totals.csv"
FIRST_PURCHASES = 20
"""How many purchases there are before the derived tables follow, so that each table gets a first commit."""

TOTALS = "SELECT country, purchases, pieces, revenue FROM country_totals ORDER BY country"
QUESTIONS = {
    "How much has each country bought until now?": """
        SELECT country, purchases, pieces, revenue FROM running_totals ORDER BY revenue DESC""",
    "Which windows of ten minutes had the highest revenue?": """
        SELECT window_start, sum(purchases)::bigint AS purchases, sum(revenue) AS revenue
        FROM window_sales GROUP BY ALL ORDER BY revenue DESC, window_start LIMIT 5""",
    "What do the largest purchases say about their products?": """
        SELECT purchase_id, country, product, category, quantity, amount, margin
        FROM enriched_purchases ORDER BY amount DESC, purchase_id LIMIT 5""",
    "Which category earns the most?": """
        SELECT category, purchases, pieces, revenue, margin FROM category_sales ORDER BY margin DESC""",
    "Which products run low?": """
        SELECT product_id, product, in_stock FROM low_stock ORDER BY in_stock, product_id""",
}


def main() -> None:
    """Run the example. The exit status is 0 only if the known file gives the known totals."""
    options = _options()
    workspace = Workspace.open(options.lake, options.state)
    events, phases = list(trade(options.purchases, options.seed, rates_of(options))), Phases(output)
    late = list(late_purchases(options.late, options.purchases, options.seed))
    prepare_state_folder(workspace)
    try:
        with phases.phase("Starting PostgreSQL, Kafka, Kafka Connect and S3, and loading the shop"):
            start_pipeline(workspace, output, seed=partial(_load, options.seed))
            _send_known_file(workspace)
        with phases.phase("Ingesting products and stock"):
            _ingest(workspace)
        with phases.phase("The batch job: totals by country of the known file"):
            _run(workspace, "derive", "--derived", "country_totals")
            totals = workspace.open_lake.sql(TOTALS)
            print_answer(totals)
        with phases.phase(f"Trading: {options.purchases} purchases while the derived tables follow"):
            first, later = events[:FIRST_PURCHASES], events[FIRST_PURCHASES:]
            _happen(workspace, first, 1000, threading.Event())
            with following(workspace, output, "derive") as run, live_view(output) as show:
                meanwhile(partial(_happen, workspace, later, options.rate), run, show)
                meanwhile(partial(_wait_until_derived, workspace, options.purchases), run, show)
        with phases.phase(f"{len(late)} purchases come hours late"):
            _happen(workspace, late, 1000, threading.Event())
            _ingest(workspace)
            _run(workspace, "derive")
        with phases.phase("Asking the lake"):
            for question, sql in QUESTIONS.items():
                output.print(f"\n{question}", style="italic", highlight=False)
                print_answer(workspace.open_lake.sql(sql))
    finally:
        if not options.keep_running:
            with phases.phase("Stopping"):
                down(workspace.state)
    print_times(phases)
    if options.keep_running:
        print_what_runs(options.lake, options.state)
    if _rows(totals) != known_totals():
        raise SystemExit(f"The totals by country differ from {KNOWN_TOTALS}")


def known_totals() -> list[tuple[str, int, int, Decimal]]:
    """Return the totals by country that the known file must give, in the order of the countries."""
    with KNOWN_TOTALS.open(encoding="utf-8", newline="") as file:
        return [
            (row["country"], int(row["purchases"]), int(row["pieces"]), Decimal(row["revenue"]))
            for row in csv.DictReader(file)
        ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", type=Path, default=Path("examples/sales/lake.toml"), help="the lake file")
    parser.add_argument("--state", type=Path, default=Path(".tributary-sales"), help="the state folder")
    parser.add_argument(
        "--rate", type=number(0.1, 1000), default=30, help="events per second of the real time"
    )
    add_settings(parser)
    parser.add_argument("--keep-running", action="store_true", help="keep the servers running at the end")
    return parser.parse_args()


def _load(seed: int, _: Source, connection: psycopg.Connection[Any]) -> None:
    write_shop(connection, seed)


def _send_known_file(workspace: Workspace) -> None:
    bootstrap = workspace.settings.kafka_bootstrap
    create_topics(workspace.lake, bootstrap)
    with sending(bootstrap, kafka_topic(workspace.lake, "known_purchases")) as sender:
        sender.send_all(known_purchases())


def _happen(workspace: Workspace, events: Sequence[Event], rate: float, stop: threading.Event) -> None:
    """Send the purchases to Kafka and change the stock in the database, `rate` events a second."""
    (source,) = workspace.lake.sources
    database = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)
    topic = kafka_topic(workspace.lake, "purchases")
    with database.connect() as connection, sending(workspace.settings.kafka_bootstrap, topic) as sender:
        for event in events:
            if stop.is_set():
                return
            if not isinstance(event, Restocked):
                sender.send(event.purchase)
            change_stock(connection, event)
            time.sleep(1 / rate)


def _ingest(workspace: Workspace) -> None:
    wait_until_kafka_holds_all(workspace, Patience.of(CATCH_UP_SECONDS))
    _run(workspace, "ingest")


def _run(workspace: Workspace, command: Command, *options: str) -> None:
    """Run the app to its end, as the commands `ingest` and `derive` do."""
    run = start_ingest(workspace, output, command, options=options)
    watch_run(run, output)
    print_dropped(run.progress, output)


def _wait_until_derived(workspace: Workspace, purchases: int, stop: threading.Event) -> None:
    """Return when the last purchase is in all results. Each purchase is in two windows.

    Only then do the late purchases come, so their windows are closed for certain."""

    def lacking() -> str | None:
        stop.wait(1)  # Reading the tables takes processor time from the app.
        totals, windows = (_count(workspace, table) for table in ("running_totals", "window_sales"))
        if totals >= purchases and windows >= 2 * purchases:
            return None
        return f"{totals} of {purchases} purchases in the totals, {windows} of {2 * purchases} in the windows"

    Patience.of(CATCH_UP_SECONDS, stop=stop).wait("the derived tables", lacking, "See the app's log.")


def _count(workspace: Workspace, table: str) -> int:
    try:
        (row,) = workspace.open_lake.sql(f"SELECT sum(purchases)::bigint AS n FROM {table}").to_pylist()
    except UnknownTable:
        return 0
    return row["n"] or 0


def _rows(answer: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.to_pylist()]


if __name__ == "__main__":
    run_example(main)
