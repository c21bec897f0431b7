"""The command `reconcile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    Environment,
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
    on_aws: Annotated[
        bool, typer.Option("--aws", help="Compare the deployed lake, from a machine in its network.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Compare every table of the lake with its source, row by row and value by value.

    First the command waits until the lake holds all that the source has committed so far. Unless the lake is
    up to date already, an ingest must be running. Rows that change during the comparison are compared again.

    The exit status is 0 only if the lake holds exactly the source's rows.

    With --aws, the command reads the databases, Kafka and S3 with your credentials. It logs in to a database
    as its connector does.
    """
    from tributary.cli.reconcile_view import print_findings, reconciliation_facts

    if on_aws:
        found = _find_differences_on_aws(lake, environment, state, wait)
    else:
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


def _find_differences_on_aws(
    lake_file: Path, environment: str | None, state: Path, wait_seconds: float
) -> Reconciliation:
    """Reconcile all sources of the deployed lake, and show the progress."""
    from tributary.cli.aws.linked_lake import deployed_lake_with_sources
    from tributary.operations.reconcile.barrier import Patience
    from tributary.operations.whole_lake import reconcile_links

    with (
        messages.status("reconciling") as status,
        deployed_lake_with_sources(lake_file, environment, state) as lake,
    ):
        return reconcile_links(
            lake.links(), lake.item_links(), lambda: Patience.of(wait_seconds, status.update)
        )
