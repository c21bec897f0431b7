"""The command that serves the lake to BI tools."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    Environment,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.free_port import require_free
from tributary.cli.rendering import output, tell

PORT = 3307
OPTIONS_FILE = "sql-server.cnf"


def sql_server(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="On 127.0.0.1.")] = PORT,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="How long a query may take once its tables are read.")
    ] = 60.0,
    memory: Annotated[str, typer.Option("--memory", help="How much memory a query may use.")] = "1GB",
    on_aws: Annotated[bool, typer.Option("--aws", help="Serve the deployed lake.")] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Let BI tools and notebooks read the lake in SQL, over MySQL's protocol, until Ctrl-C.

    The tiles of the boards beside the lake file are tables of the database boards.

    It listens on this machine only, and nothing can be changed. The user is lake. The password is in a file
    that only you can read; MySQL's clients take it with --defaults-file.
    """
    from tributary.api.open_lake import open_lake
    from tributary.api.sql import Limits
    from tributary.contract.boards.board import board_files
    from tributary.sql_server.board_tables import BoardTables
    from tributary.sql_server.server import HOST, USER, open_access, serve
    from tributary.sql_server.session import ServedLake

    require_free(port, "the port")
    opened = open_lake(lake, state=state, aws=on_aws, environment=environment)
    options = state / OPTIONS_FILE
    access = open_access(options, port)

    def say() -> None:
        output.print(f"MySQL's protocol at {HOST}:{port}, user {USER}", highlight=False)
        output.print(
            f"Connect with: mysql --defaults-file={quote(str(options))}", highlight=False, soft_wrap=True
        )

    boards = BoardTables(partial(board_files, lake), tell)
    serve(ServedLake(opened, Limits(seconds, memory), boards), access, say)
