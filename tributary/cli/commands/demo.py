"""The commands of the demos, and the queries that they show at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import duration_text, output, print_answer, print_table
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.cli.demo_steps import DemoOutcome, Phases
    from tributary.contract.lake import Lake

DEMO_STATE_FOLDER = Path(".tributary-demo")
ENGINES_LAKE_FILE = Path("demo-engines.toml")
ENGINES_STATE_FOLDER = Path(".tributary-demo-engines")
DYNAMODB_LAKE_FILE = Path("demo-dynamodb.toml")
DYNAMODB_STATE_FOLDER = Path(".tributary-demo-dynamodb")

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


_QUESTIONS_OF_DYNAMODB = (
    (
        "How many customers are in each of the ten partitions, and what have they spent?",
        """SELECT id__right_1 AS partition, count(*) AS customers, sum(orders) AS orders, sum(spent) AS spent
        FROM customers GROUP BY ALL ORDER BY partition""",
    ),
    (
        "Which customers of one partition changed last?",
        """SELECT _source_ts AS changed, _op AS op, id, name, address ->> 'city' AS city, orders, spent
        FROM customers WHERE id__right_1 = '7' ORDER BY _source_ts DESC LIMIT 3""",
    ),
)


_Scale = Annotated[
    float,
    typer.Option("--scale", min=0.0001, max=10, help="Size of the shop; 1 is TICKIT's own 424,319 rows."),
]
_Transactions = Annotated[
    int, typer.Option("--transactions", min=5, help="How many transactions follow the first snapshot.")
]
_Rate = Annotated[
    float, typer.Option("--rate", min=0.1, metavar="PER SECOND", help="Transactions per second.")
]
_Seed = Annotated[int, typer.Option("--seed", help="Another seed gives another day of trade.")]
_KeepRunning = Annotated[bool, typer.Option("--keep-running", help="Keep the servers running at the end.")]


def demo(
    scale: _Scale = 0.1,
    transactions: _Transactions = 1_000,
    rate: _Rate = 25.0,
    seed: _Seed = 1,
    keep_running: _KeepRunning = False,
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
    from tributary.tickit.workload import Plan

    plan = DemoPlan(scale, Plan(transactions, rate, seed))
    _show(
        _Demo(LAKE_FILE, DEFAULT_LAKE_FILE, check_lake, "sales"),
        lambda workspace, phases: run_demo(workspace, plan, phases, lambda: _ask(workspace, _QUESTIONS)),
        lake,
        state,
        keep_running=keep_running,
    )


def demo_engines(
    scale: _Scale = 0.05,
    transactions: _Transactions = 500,
    rate: _Rate = 25.0,
    seed: _Seed = 1,
    keep_running: _KeepRunning = False,
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
    from tributary.tickit.workload import Plan

    plan = Plan(transactions, rate, seed)
    _show(
        _Demo(LAKE_FILE, ENGINES_LAKE_FILE, check_lake, "sales"),
        lambda workspace, phases: run_demo(
            workspace, scale, plan, phases, partial(_ask_three_databases, workspace)
        ),
        lake,
        state,
        keep_running=keep_running,
    )


def demo_dynamodb(
    customers: Annotated[
        int, typer.Option("--customers", min=1, help="How many items the table has at first.")
    ] = 500,
    changes: Annotated[
        int, typer.Option("--changes", min=1, help="How many items are put, updated and deleted then.")
    ] = 1_000,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, metavar="PER SECOND", help="Changes per second.")
    ] = 25.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other customers and changes.")] = 1,
    keep_running: _KeepRunning = False,
    lake: LakeFile = DYNAMODB_LAKE_FILE,
    state: Annotated[
        Path, typer.Option("--state", metavar="FOLDER", help="A state folder for this demo alone.")
    ] = DYNAMODB_STATE_FOLDER,
) -> None:
    """Show a lake that follows DynamoDB over Kinesis, without Kafka, on this machine.

    The demo starts a DynamoDB and a Kinesis (moto and kinesalite). It fills a table of customers, which the
    lake partitions by the last digit of the id. Then customers sign up, buy, move and leave. Records come
    late and twice, as they may on AWS. In the end, the demo queries the lake in SQL, and compares every item
    with its row.

    If the folder has no demo-dynamodb.toml, the demo writes its own one. The exit status is 0 only if the
    lake and DynamoDB are identical.
    """
    from tributary.cli.demo_dynamodb import LAKE_FILE, DemoPlan, check_lake, run_demo
    from tributary.tickit.workload import Plan

    plan = DemoPlan(customers, Plan(changes, rate, seed))
    _show(
        _Demo(LAKE_FILE, DYNAMODB_LAKE_FILE, check_lake, "customers"),
        lambda workspace, phases: run_demo(
            workspace, plan, phases, lambda: _ask(workspace, _QUESTIONS_OF_DYNAMODB)
        ),
        lake,
        state,
        keep_running=keep_running,
    )


def demo_sql(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A statement, in PostgreSQL's dialect.")],
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Run SQL in the ticket shop's PostgreSQL, to change what the lake follows.

    The shop runs while tributary start --demo does. tributary query asks the lake instead.

    Example: tributary demo-sql "UPDATE venue SET venuename = 'City Hall' WHERE venueid = 1"
    """
    from tributary.cli.demo import check_lake, shop_database
    from tributary.tickit.statements import run_statement

    workspace = Workspace.open(lake, state)
    check_lake(workspace.lake)
    workspace.require("postgres")
    with shop_database(workspace).connect() as connection:
        answer = run_statement(connection, sql)
    if answer.rows is not None:
        print_table(answer.columns, answer.rows)
    output.print(answer.told, highlight=False)


@dataclass(frozen=True)
class _Demo:
    """What differs between the demos.

    template   the name of the demo's lake file beside the code
    lake_file  where the demo writes its lake file
    check      raises `DemoImpossible` if the demo cannot fill a lake
    table      the table of the query that is proposed at the end
    """

    template: str
    lake_file: Path
    check: Callable[[Lake], None]
    table: str


def _show(
    demo: _Demo,
    course: Callable[[Workspace, Phases], DemoOutcome],
    lake: Path,
    state: Path,
    *,
    keep_running: bool,
) -> None:
    """Run a demo from an empty state folder, and say what it found and took. Exit with 1 if it differs."""
    from tributary.cli.demo_steps import Phases, prepare_state_folder, write_lake_file
    from tributary.cli.reconcile_view import print_findings
    from tributary.local.pipeline import down

    if lake == demo.lake_file and not lake.exists():
        write_lake_file(demo.template, lake)
        output.print(f"Wrote {lake}, the lake file of the demo.", highlight=False)
    workspace = Workspace.open(lake, state)
    phases = Phases(output)
    demo.check(workspace.lake)
    prepare_state_folder(workspace)
    output.print(
        f"To watch it in a browser, run in another terminal: tributary console {_places(lake, state)}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    try:
        outcome = course(workspace, phases)
        print_findings(outcome.reconciliation)
    finally:
        if not keep_running:
            with phases.phase("Stopping"):
                down(workspace.state)
    _print_what_it_took(phases, outcome)
    _print_what_is_left(state, lake, demo.table, is_up=keep_running)
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


def _ask(workspace: Workspace, questions: Iterable[tuple[str, str]]) -> None:
    for question, sql in questions:
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


def _places(lake: Path, state: Path) -> str:
    """Return the options by which other commands find the demo's lake."""
    return f"--state {state}" if lake == DEFAULT_LAKE_FILE else f"--lake {lake} --state {state}"


def _print_what_is_left(state: Path, lake: Path, table: str, *, is_up: bool) -> None:
    at = _places(lake, state)
    query = f'tributary query {at} "SELECT * FROM {table} LIMIT 5"'
    if is_up:
        text = (
            f"All servers are still running: {query}. To see the lake in a browser, run tributary console "
            f"{at}. tributary down --state {state} stops the servers."
        )
    else:
        text = (
            f"The lake is kept: tributary up {at}, then {query}, or tributary console {at} to see it in a "
            "browser."
        )
    output.print(text, markup=False, highlight=False, soft_wrap=True)
