"""The command `start`: everything that it takes to see a lake, in one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.console import (
    PORT,
    Certificate,
    CertificateKey,
    Listen,
    listening_on,
    say_address,
)
from tributary.cli.commands.init import ask_for_password
from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, tell
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.console.listening import Listening
    from tributary.operations.runs.run_progress import RunProgress

_SCALE = 0.1


def start(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The console's.")] = PORT,
    listen: Listen = None,
    certificate: Certificate = None,
    key: CertificateKey = None,
    keep_servers: Annotated[
        bool, typer.Option("--keep-servers", help="At the end, leave the servers up for other commands.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show no button in the console that changes something.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Follow the demo's ticket shop, which trades all the time.")
    ] = False,
    scale: Annotated[
        float | None,
        typer.Option(
            "--scale",
            min=0.0001,
            max=10,
            help="With --demo: the size of the shop; 1 is 424,319 rows, the default is 0.1.",
        ),
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Start the pipeline, follow the database, and show the lake in the browser, until Ctrl-C.

    This is tributary up, tributary ingest --follow and tributary console in one. Ctrl-C lets the current
    commits finish, and stops everything. The data stays, and the next start resumes from it.

    If the Spark app or a server dies, or a connector loses its database, the command says so and starts it
    again. If the Spark app dies over and over, the command ends with the reason. Passwords come from the
    environment variables that the lake file names. On a terminal, the command asks for those that are
    missing.

    With --demo, the database is a ticket shop of the command's own. If this folder has no lake.toml, the
    command writes the shop's. tributary demo-sql runs SQL in the shop's database.
    """
    from tributary.cli.demo import LAKE_FILE, check_lake, load_shop, trading
    from tributary.cli.demo_steps import write_lake_file
    from tributary.cli.startup_view import start_pipeline
    from tributary.console.console import Console
    from tributary.console.local_lake import LocalLake
    from tributary.console.server import serve, stop_serving
    from tributary.local import pipeline
    from tributary.operations.alerts.keeper import AlertKeeper
    from tributary.operations.lost_connections import ConnectionKeeper
    from tributary.operations.runs.follower import Follower
    from tributary.operations.runs.ingest_run import start_ingest
    from tributary.operations.snapshots.keeper import SnapshotKeeper
    from tributary.operations.verify.rounds import VerifyKeeper

    if scale is not None and not demo:
        raise typer.BadParameter("only the demo's shop has a scale: add --demo", param_hint="--scale")
    listening = listening_on(port, listen, certificate, key)
    if demo and lake == DEFAULT_LAKE_FILE and not lake.exists():
        write_lake_file(LAKE_FILE, lake)
        output.print(f"Wrote {lake}, the lake file of the demo.", highlight=False)
    workspace = Workspace.open(lake, state)
    if demo:
        check_lake(workspace.lake)
    _ask_for_missing_passwords(workspace)
    try:
        start_pipeline(workspace, messages, seed=load_shop(scale or _SCALE, messages) if demo else None)
        follower = Follower(
            start=lambda: start_ingest(workspace, messages, follow=True),
            tell=tell,
            words=remedy_words,
            on_progress=_first_rows(),
            mend=lambda: _mend(workspace),
            on_end=stop_serving,
        )
        keeper = SnapshotKeeper(workspace, tell)
        alerts = AlertKeeper(workspace, tell, remedy_words)
        verification = VerifyKeeper(workspace, tell)
        connections = ConnectionKeeper.of(workspace, tell)
        trade = trading(workspace, tell) if demo else nullcontext()
        with (
            follower.running(),
            keeper.running(),
            alerts.running(),
            verification.running(),
            connections.running(),
            trade,
        ):
            serve(
                Console(LocalLake(workspace, follower), has_buttons=not read_only),
                listening,
                on_start=lambda: _say_start(listening),
            )
        if follower.failure is not None:
            raise follower.failure
    finally:
        if not keep_servers:
            output.print("Stopping the servers …", style="dim")
            pipeline.down(workspace.state)


def _say_start(listening: Listening) -> None:
    say_address(listening)
    output.print("Press Ctrl-C to stop everything. The data stays.", style="dim")


def _ask_for_missing_passwords(workspace: Workspace) -> None:
    """Put passwords that nobody has set into this process's environment, if somebody can be asked."""
    if not sys.stdin.isatty():
        return
    for source in workspace.lake.sources:
        if (own := source.connection) is None:
            continue
        replicator = own.user or "the replication user"
        for variable, user in ((own.admin_password_env, own.admin_user), (own.password_env, replicator)):
            if variable is not None and not os.environ.get(variable):
                os.environ[variable] = ask_for_password(str(user), own.host).get_secret_value()


def _mend(workspace: Workspace) -> str | None:
    """Start the servers that have died, and return their names."""
    from tributary.cli.startup_view import start_pipeline
    from tributary.local.all_servers import SERVICES
    from tributary.local.process import has_died

    died = [name for name in SERVICES if has_died(name, workspace.state.run)]
    if not died:
        return None
    tell(f"{' and '.join(died)} died. The log says why: {workspace.state.log(died[0])}")
    start_pipeline(workspace, messages)
    return " and ".join(died)


def _first_rows() -> Callable[[RunProgress], None]:
    """Return a function that says when tables have their first rows, and what goes wrong with a table."""
    with_rows = 0
    failures: dict[str, str] = {}

    def show(progress: RunProgress) -> None:
        nonlocal with_rows, failures
        count = sum(1 for table in progress.tables.values() if table.commits or table.state == "caught up")
        if count > with_rows:
            with_rows = count
            output.print(f"{count} of {len(progress.tables)} tables are in the lake.", highlight=False)
        for name, failure in progress.failures.items():
            if failures.get(name) != failure:
                tell(f"{name}: {failure}")
        failures = dict(progress.failures)

    return show
