"""The command that serves the web console."""

from __future__ import annotations

from typing import Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import output
from tributary.contract.errors import TributaryError
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace

PORT = 8642


class PortTaken(TributaryError):
    """Another process listens on the console's port."""


def console(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="On 127.0.0.1.")] = PORT,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, but no button that changes something.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Serve pages that show the lake in a browser, on this machine only, until Ctrl-C.

    They show the way of a row with the health of each part, all tables, a table's commits, every event of a
    row, what is in quarantine, and the answers to SQL. Buttons pause, resume, rebuild and replay, and read a
    table again. Prometheus reads /metrics. /healthz answers with 503 if a part needs a person.
    """
    from tributary.console.console import Console
    from tributary.console.server import serve

    workspace = Workspace.open(lake, state)
    require_free(port)
    serve(Console(workspace, remedy_words, may_act=not read_only), port, on_start=lambda: say_address(port))


def require_free(port: int) -> None:
    """Raise `PortTaken` if another process listens on the port."""
    from tributary.local.state import is_free

    if not is_free(port):
        raise PortTaken(
            "the console's port is in use",
            where=f"127.0.0.1:{port}",
            remedy="Stop that process, or name another port with --port.",
        )


def say_address(port: int) -> None:
    """Print where the console is."""
    output.print(f"The console is at http://127.0.0.1:{port}", highlight=False)
