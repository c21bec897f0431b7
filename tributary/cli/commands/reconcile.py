"""The command `reconcile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, print_json
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.operations.reconcile.proof import Reconciliation


def reconcile(
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="How long the lake may take to catch up."),
    ] = 60.0,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Compare every table of the lake with its source, row by row and value by value.

    First the command waits until the lake holds all that the source has committed so far. Unless the lake is
    up to date already, an ingest must be running. Rows that change during the comparison are compared again.

    The exit status is 0 only if the lake holds exactly the source's rows.
    """
    from tributary.cli.reconcile_view import print_findings, reconciliation_facts

    found = _find_differences(Workspace.open(lake, state), wait)
    if as_json:
        print_json(reconciliation_facts(found))
    else:
        print_findings(found)
    if not found.identical:
        raise typer.Exit(1)


def _find_differences(workspace: Workspace, wait_seconds: float) -> Reconciliation:
    """Reconcile all sources of the lake, and show the progress."""
    from tributary.operations.whole_lake import reconcile_lake

    with messages.status("reconciling") as status:
        return reconcile_lake(workspace, wait_seconds, status.update)
