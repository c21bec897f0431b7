"""The command `demo`, and the queries that it shows at the end."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import DEFAULT_LAKE_FILE, LakeFile
from tributary.cli.rendering import duration_text, output, print_answer, print_table
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.cli.demo_steps import DemoOutcome, Phases

DEMO_STATE_FOLDER = Path(".tributary-demo")
ENGINES_LAKE_FILE = Path("demo-engines.toml")
ENGINES_STATE_FOLDER = Path(".tributary-demo-engines")

_QUESTIONS = (
    (
        "Which events sold best?",
        """SELECT e.eventname AS event, c.catname AS category, sum(s.qtysold) AS tickets,
            sum(s.pricepaid) AS paid
        FROM sales s JOIN event e USING (eventid) JOIN category c USING (catid)
        GROUP BY ALL ORDER BY paid DESC LIMIT 5""",
    ),
    (
        "How much was sold through each channel, a column that was added while rows flowed?",
        """SELECT channel, count(*) AS sales, sum(pricepaid) AS paid
        FROM sales GROUP BY ALL ORDER BY sales DESC""",
    ),
    (
        "Which listings changed last, and by which event in Kafka?",
        """SELECT _source_ts AS committed, _op AS op, listid, numtickets, _offset AS "offset"
        FROM listing ORDER BY _source_ts DESC, _seq DESC LIMIT 3""",
    ),
)

_QUESTION_OF_ENGINES = """SELECT e.eventname AS event, c.catname AS category, u.state AS "buyer's state",
    sum(s.qtysold) AS tickets
FROM web.shop.sales s JOIN event e USING (eventid) JOIN category c USING (catid)
    JOIN users u ON u.userid = s.buyerid
WHERE s._deleted IS NOT TRUE
GROUP BY ALL ORDER BY tickets DESC, event LIMIT 3"""


def demo(
    scale: Annotated[
        float,
        typer.Option("--scale", min=0.0001, max=10, help="Size of the shop; 1 is TICKIT's own 424,319 rows."),
    ] = 0.1,
    transactions: Annotated[
        int, typer.Option("--transactions", min=5, help="How many transactions follow the snapshot.")
    ] = 1_000,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="PER SECOND", help="Transactions per second.")
    ] = 25.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives another day of trade.")] = 1,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Keep the servers running at the end.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: Annotated[
        Path, typer.Option("--state", metavar="FOLDER", help="A state folder for the demo alone.")
    ] = DEMO_STATE_FOLDER,
) -> None:
    """Show the whole pipeline on this machine: a ticket shop's PostgreSQL becomes a lake that follows it.

    The demo starts the pipeline, loads the shop's seven tables (TICKIT), ingests them, and follows a day of
    trade: inserts, updates, deletes, changed primary keys, an added column, a truncated table. Then it
    queries the lake in SQL, and compares every row of every table with the database.

    If this folder has no lake.toml, the demo writes its own one. It removes the remains of an earlier demo
    from its state folder. The exit status is 0 only if the lake and the database are identical.
    """
    from tributary.cli.demo import LAKE_FILE, DemoPlan, check_lake, run_demo
    from tributary.cli.demo_steps import Phases, prepare_state_folder, write_lake_file
    from tributary.cli.reconcile_view import print_findings
    from tributary.local.pipeline import down
    from tributary.tickit.workload import Plan

    if lake == DEFAULT_LAKE_FILE and not lake.exists():
        write_lake_file(LAKE_FILE, lake)
        output.print(f"Wrote {lake}, the lake file of the demo.", highlight=False)
    workspace = Workspace.open(lake, state)
    phases = Phases(output)
    check_lake(workspace.lake)
    prepare_state_folder(workspace)
    try:
        plan = DemoPlan(scale, Plan(transactions, rate, seed))
        outcome = run_demo(workspace, plan, phases, lambda: _ask(workspace))
        print_findings(outcome.reconciliation)
    finally:
        if not keep_running:
            with phases.phase("Stopping"):
                down(workspace.state)
    _print_what_it_took(phases, outcome)
    _print_what_is_left(state, keep_running)
    if not outcome.reconciliation.identical:
        raise typer.Exit(1)


def demo_engines(
    scale: Annotated[
        float,
        typer.Option("--scale", min=0.0001, max=10, help="Size of the shop; 1 is TICKIT's own 424,319 rows."),
    ] = 0.05,
    transactions: Annotated[
        int, typer.Option("--transactions", min=5, help="How many transactions follow the snapshots.")
    ] = 500,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="PER SECOND", help="Transactions per second.")
    ] = 25.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives another day of trade.")] = 1,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Keep the servers running at the end.")
    ] = False,
    lake: LakeFile = ENGINES_LAKE_FILE,
    state: Annotated[
        Path, typer.Option("--state", metavar="FOLDER", help="A state folder for this demo alone.")
    ] = ENGINES_STATE_FOLDER,
) -> None:
    """Show one lake from three databases, with Avro and a schema registry, on this machine.

    The ticket shop of the other demo is spread over a MariaDB (the web shop), a PostgreSQL (the events) and
    another PostgreSQL in the place of a SQL Server (the customers). The demo ingests them and follows a day
    of trade. It then watches one sale on its way: an update in Kafka, bronze and silver with its times, and a
    soft delete with the row before and after. Queries join the three databases, now and as of the beginning
    of the trade. In the end, it compares every row of every table.

    If the folder has no demo-engines.toml, the demo writes its own one. The exit status is 0 only if the lake
    and all databases are identical.
    """
    from tributary.cli.demo_engines import LAKE_FILE, check_lake, run_demo
    from tributary.cli.demo_steps import Phases, prepare_state_folder, write_lake_file
    from tributary.cli.reconcile_view import print_findings
    from tributary.local.pipeline import down
    from tributary.tickit.workload import Plan

    if lake == ENGINES_LAKE_FILE and not lake.exists():
        write_lake_file(LAKE_FILE, lake)
        output.print(f"Wrote {lake}, the lake file of the demo.", highlight=False)
    workspace = Workspace.open(lake, state)
    phases = Phases(output)
    check_lake(workspace.lake)
    prepare_state_folder(workspace)
    try:
        plan = Plan(transactions, rate, seed)
        outcome = run_demo(workspace, scale, plan, phases, partial(_ask_three_databases, workspace))
        print_findings(outcome.reconciliation)
    finally:
        if not keep_running:
            with phases.phase("Stopping"):
                down(workspace.state)
    _print_what_it_took(phases, outcome)
    _print_what_is_left(state, keep_running, lake)
    if not outcome.reconciliation.identical:
        raise typer.Exit(1)


def _ask_three_databases(workspace: Workspace, trade_began: datetime) -> None:
    for question, moment in (
        ("Now", None),
        (f"As of {trade_began:%H:%M:%S} UTC, before the trade", trade_began),
    ):
        output.print(
            f"\n{question}: who buys the most tickets, for which events?", style="italic", highlight=False
        )
        print_answer(workspace.open_lake.sql(_QUESTION_OF_ENGINES, moment))


def _ask(workspace: Workspace) -> None:
    for question, sql in _QUESTIONS:
        output.print(f"\n{question}", style="italic", highlight=False)
        print_answer(workspace.open_lake.sql(sql))


def _print_what_it_took(phases: Phases, outcome: DemoOutcome) -> None:
    output.print()
    rows = [(name, f"{seconds:.1f} s") for name, seconds in phases.seconds.items()]
    rows.append(("all of it", f"{sum(phases.seconds.values()):.1f} s"))
    print_table(("phase", "time"), rows, (False, True))
    progress, trade = outcome.progress, outcome.workload
    output.print(
        f"\n{sum(trade.transactions.values()):,} transactions changed {trade.changes:,} rows; "
        f"they were in the lake after {duration_text(progress.p50_ms)} (p50), "
        f"{duration_text(progress.p95_ms)} (p95).\n"
        f"All processes together used {outcome.resident_bytes / 1e9:.1f} GB of memory.",
        highlight=False,
        soft_wrap=True,
    )


def _print_what_is_left(state: Path, is_up: bool, lake: Path = DEFAULT_LAKE_FILE) -> None:
    at = f"--state {state}" if lake == DEFAULT_LAKE_FILE else f"--lake {lake} --state {state}"
    query = f'tributary query {at} "SELECT * FROM sales LIMIT 5"'
    if is_up:
        text = (
            f"All servers are still running: {query}. To see the lake in a browser, run tributary console "
            f"{at}. tributary down --state {state} stops the servers."
        )
    else:
        text = f"The lake is kept: tributary up {at}, then {query}."
    output.print(text, markup=False, highlight=False, soft_wrap=True)
