"""The command `snapshot`."""

from __future__ import annotations

from contextlib import ExitStack
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
from tributary.cli.rendering import messages, output, print_json, tell
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.operations.snapshots.asking import ReadAgain
    from tributary.operations.sourced_lake import SourcedLake


def snapshot(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...", help="Such as sales or 'public.*'. None: what is wanted already."
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="Return then. The connector continues to read.",
        ),
    ] = None,
    on_aws: Annotated[
        bool,
        typer.Option("--aws", help="Read tables of the deployed lake again, from a machine in its network."),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Read tables again while everything keeps running, and remove rows that are gone from the source.

    The connector reads the tables in small parts and streams all changes meanwhile. So readers see each row
    as it was or as it is. After a crash of any part, the reading resumes. The command returns when Kafka
    holds the tables, or after --wait. A running ingest applies them, or the next one does. Ctrl-C does not
    end the reading.

    A table is read again by itself after a change without an event, such as a new column with a
    default, unless its entry in the lake file says repair = "manual".

    With --aws, nothing else looks for such changes. So the command first compares the catalogs of the
    databases with what it saw the last time. It reads with your credentials, and logs in to a database as its
    connector does.

    The exit status is 1 if a table could not be read, or a source could not be looked at.
    """
    from tributary.cli.aws.linked_lake import deployed_lake_with_sources
    from tributary.operations.snapshots.asking import read_again

    with ExitStack() as opened:
        sourced: SourcedLake
        workspace: Workspace | None = None
        if on_aws:
            sourced = opened.enter_context(deployed_lake_with_sources(lake, environment, state))
        else:
            sourced = workspace = Workspace.open(lake, state)
        if not sourced.lake.connected_sources:
            raise typer.BadParameter("no source of the lake file is read by Debezium", param_hint="--lake")
        looked = True
        if workspace is None:
            looked = _look(sourced)
        else:
            workspace.require("kafka", "s3", "connect")
        shown = opened.enter_context(messages.status("waiting for Kafka"))
        found = read_again(sourced, tables or (), tell, shown.update, seconds=wait)
    if as_json:
        facts = [
            {"table": str(t), "problem": found.failed.get(t), "is_read": t not in found.unread}
            for t in found.tables
        ]
        print_json(facts)
    else:
        _print(found, _next_step(workspace))
    if found.failed or not looked:
        raise typer.Exit(1)


def _look(lake: SourcedLake) -> bool:
    """Look for changes without an event, and return whether all sources could be looked at."""
    from tributary.operations.snapshots.keeper import notice_changes
    from tributary.operations.sourced_lake import passing_errors

    try:
        notice_changes(lake, tell)
    except passing_errors(lake) as error:
        tell(f"A source could not be looked at: {error}")
        return False
    return True


def _print(found: ReadAgain, next_step: str | None) -> None:
    if not found.tables:
        output.print("No table has to be read again.")
    for table in found.tables:
        if (problem := found.failed.get(table)) is not None:
            text = f"{table}: {problem}"
        elif table in found.unread:
            text = f"{table} is still being read. The next snapshot goes on with it."
        else:
            text = f"{table} was read again."
        output.print(text, markup=False, highlight=False, soft_wrap=True)
    if len(found.tables) > len(found.failed) + len(found.unread) and next_step is not None:
        output.print(next_step, highlight=False, soft_wrap=True)


def _next_step(workspace: Workspace | None) -> str | None:
    """Return what brings into the lake what was read. None: a running ingest does. No workspace: on AWS."""
    if workspace is None:
        return "A running job applies what was read, or the next one does: tributary submit ingest"
    return None if _ingests(workspace) else "The next ingest applies what was read: tributary ingest"


def _ingests(workspace: Workspace) -> bool:
    from tributary.local import spark
    from tributary.local.process import read_process

    return read_process(spark.SERVICE, workspace.state.run) is not None
