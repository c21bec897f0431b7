"""The command that serves the web console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    Environment,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.free_port import require_free
from tributary.cli.rendering import output
from tributary.contract.lake import read_lake
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.console.shown_lake import ShownLake

PORT = 8642
CONSOLE_PORT = "the console's port"


def console(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="On 127.0.0.1.")] = PORT,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, but no button that changes something.")
    ] = False,
    on_aws: Annotated[
        bool,
        typer.Option("--aws", help="Show the deployed lake with your credentials, and change nothing."),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Serve pages that show the lake in a browser, on this machine only, until Ctrl-C.

    They show the way of a row with the health of each part, all tables, a table's commits, every event of a
    row, what is in quarantine, and the answers to SQL. Buttons pause, resume, rebuild and replay, and read a
    table again. Prometheus reads /metrics. /healthz answers with 503 if a part needs a person.
    """
    from tributary.console.console import Console
    from tributary.console.server import serve

    require_free(port, CONSOLE_PORT)
    with _shown_lake(lake, environment, state, on_aws=on_aws) as shown:
        serve(Console(shown, has_buttons=not read_only), port, on_start=lambda: say_address(port))


@contextmanager
def _shown_lake(
    lake_file: Path, environment: str | None, state: Path, *, on_aws: bool
) -> Iterator[ShownLake]:
    if not on_aws:
        from tributary.console.local_lake import LocalLake

        yield LocalLake(Workspace.open(lake_file, state))
        return
    from tributary.aws.session import aws_session
    from tributary.cli.aws.remedy_words import remedy_words, worded_for_aws
    from tributary.console.aws_lake import AwsLake
    from tributary.operations.aws.deployed_lake import DeployedLake

    found = read_lake(lake_file, environment)
    with worded_for_aws(), aws_session(found, lake_file) as session:
        shown = AwsLake(DeployedLake(found, session), lake_file, remedy_words)
        shown.open()
        yield shown


def say_address(port: int) -> None:
    """Print where the console is."""
    output.print(f"The console is at http://127.0.0.1:{port}", highlight=False)
