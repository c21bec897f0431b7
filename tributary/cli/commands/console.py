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
    from tributary.console.listening import Listening
    from tributary.console.shown_lake import ShownLake

PORT = 8642
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="ADDRESS",
        help="Open the console to a network: an address of this machine, or 0.0.0.0 for all.",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--certificate", metavar="FILE", exists=True, dir_okay=False, help="The certificate's PEM file."
    ),
]
CertificateKey = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", exists=True, dir_okay=False, help="The private key's PEM file."),
]
CONSOLE_PORT = "the console's port"


def console(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The console's.")] = PORT,
    listen: Listen = None,
    certificate: Certificate = None,
    key: CertificateKey = None,
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
    """Serve pages that show the lake in a browser, until Ctrl-C.

    They show the path of a row with the health of each part, all tables, a table's commits, every event of a
    row, what is in quarantine, and the answers to SQL. Buttons pause, resume, rebuild and replay, and read a
    table again. Prometheus reads /metrics. /healthz answers with 503 if a part needs a person.

    The console listens on 127.0.0.1. With --listen, it listens on another address of this machine, with TLS.
    Then it shows nothing without the token in the environment variable TRIBUTARY_CONSOLE_TOKEN.
    """
    from tributary.console.console import Console
    from tributary.console.server import serve

    listening = listening_on(port, listen, certificate, key)
    with _shown_lake(lake, environment, state, on_aws=on_aws) as shown:
        serve(Console(shown, has_buttons=not read_only), listening, on_start=lambda: say_address(listening))


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


def listening_on(port: int, listen: str | None, certificate: Path | None, key: Path | None) -> Listening:
    """Return where the console listens. Raises PortTaken and NetworkUnfit."""
    from tributary.console.listening import Loopback, Network

    if listen is None:
        if certificate is not None or key is not None:
            raise typer.BadParameter("a certificate is of no use without --listen", param_hint="--listen")
        found: Listening = Loopback(port)
    elif certificate is None or key is None:
        missing = "--certificate" if certificate is None else "--key"
        raise typer.BadParameter("the console is open to a network only with TLS", param_hint=missing)
    else:
        found = Network.open(listen, port, certificate, key)
    require_free(port, CONSOLE_PORT, found.address)
    return found


def say_address(listening: Listening) -> None:
    """Print where the console is."""
    output.print(f"The console is at {listening.url}", highlight=False, soft_wrap=True)
