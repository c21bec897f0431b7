"""The command that runs Apache Superset on the lake."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    Environment,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.commands.sql_server import OPTIONS_FILE
from tributary.cli.commands.sql_server import PORT as SQL_PORT
from tributary.cli.free_port import require_free
from tributary.cli.rendering import messages, output, tell

if TYPE_CHECKING:
    from pathlib import Path

    from tributary.api.open_lake import OpenLake
    from tributary.local.state import StateFolder

PORT = 8088


def superset(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Of Superset, on 127.0.0.1.")] = PORT,
    sql_port: Annotated[
        int, typer.Option("--sql-port", min=1, max=65535, help="Of the lake's server, on 127.0.0.1.")
    ] = SQL_PORT,
    on_aws: Annotated[bool, typer.Option("--aws", help="Show the deployed lake.")] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Show the lake in Apache Superset, until Ctrl-C: the boards as dashboards, and all tables to explore.

    The first start installs Superset (about 650 MB) in the cache, apart from Tributary's own packages, and
    prepares its folder in the state folder. Every start brings the dashboards up to date with the board
    files. Your own charts and dashboards stay.

    Superset reads the lake as tributary sql-server serves it, and cannot change it. Both listen on this
    machine only.
    """
    from tributary.api.open_lake import open_lake
    from tributary.local.process import stop_process
    from tributary.local.state import StateFolder
    from tributary.operations.keeping import alone
    from tributary.superset.home import SERVICE

    folder = StateFolder(state)
    folder.create()
    with alone(folder, SERVICE) as is_alone:
        if not is_alone:
            raise typer.BadParameter("another tributary superset runs with this folder", param_hint="--state")
        # Only a server that outlived its command can be there.
        stop_process(SERVICE, folder.run)
        require_free(port, "the port of Superset")
        require_free(sql_port, "the port of the lake's server")
        opened = open_lake(lake, state=state, aws=on_aws, environment=environment)
        _run(opened, lake, folder, port, sql_port)


def _run(opened: OpenLake, lake: Path, folder: StateFolder, port: int, sql_port: int) -> None:
    from tributary.api.sql import Limits
    from tributary.contract.boards.board import board_files
    from tributary.sql_server.board_tables import BoardTables
    from tributary.sql_server.server import HOST, USER, open_access, serving
    from tributary.sql_server.session import ServedLake
    from tributary.superset.home import SupersetHome
    from tributary.superset.run import Served, running, show_boards

    with messages.status("installing Superset (the first time: some minutes)") as shown:
        home = SupersetHome.open(folder.path / "superset")
        shown.update("preparing Superset's own database (the first time: a minute)")
        home.prepare()
    boards = BoardTables(partial(board_files, lake), tell)
    access = open_access(folder.path / OPTIONS_FILE, sql_port)
    with (
        serving(ServedLake(opened, Limits(60.0, "1GB"), boards), access),
        messages.status("starting Superset") as shown,
        running(home, port, folder.run) as server,
    ):
        served = Served(HOST, access.port, USER, access.password)
        found = show_boards(server, opened.lake.name, served, board_files(lake), shown.update)
        shown.stop()
        for problem in found.problems:
            tell(problem)
        secret = f"the password is in {home.secrets_file}, under password"
        for line in (
            f"Superset at {server.address}, user {home.login.user}; {secret}",
            *(f"Dashboard: {address}" for address in found.dashboards),
        ):
            output.print(line, markup=False, highlight=False, soft_wrap=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
