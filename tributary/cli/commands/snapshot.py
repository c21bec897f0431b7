"""The command `snapshot`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, print_json
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.contract.table_name import TableName


def snapshot(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...", help="Such as sales or 'public.*'. None: what is wanted already."
        ),
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Read tables again while everything keeps running, and remove rows that are gone from the source.

    The connector reads the tables in small parts and streams all changes meanwhile. So readers see each row
    as it was or as it is. After a crash of any part, the reading resumes. The command returns when Kafka
    holds the tables; a running ingest applies them, or the next one does. Ctrl-C does not end the reading.

    A table is read again by itself after a change without an event, such as a new column with a
    default, unless its entry in the lake file says repair = "manual".

    The exit status is 1 if a table could not be read.
    """
    from tributary.operations.snapshots.asking import read_again

    workspace = Workspace.open(lake, state)
    if not workspace.lake.connected_sources:
        raise typer.BadParameter("no source of the lake file is read by Debezium", param_hint="--lake")
    with messages.status("waiting for Kafka") as shown:
        found = read_again(workspace, tables or (), messages.print, shown.update)
    wanted, failed = found.tables, found.failed
    if as_json:
        print_json([{"table": str(t), "problem": failed.get(t)} for t in sorted(wanted)])
    else:
        _print(wanted, failed, ingests=_ingests(workspace))
    if failed:
        raise typer.Exit(1)


def _print(wanted: Collection[TableName], failed: Mapping[TableName, str], *, ingests: bool) -> None:
    if not wanted:
        output.print("No table has to be read again.")
    for table in sorted(wanted):
        problem = failed.get(table)
        text = f"{table}: {problem}" if problem else f"{table} was read again."
        output.print(text, markup=False, highlight=False, soft_wrap=True)
    if len(wanted) > len(failed) and not ingests:
        output.print("The next ingest applies what was read: tributary ingest", highlight=False)


def _ingests(workspace: Workspace) -> bool:
    from tributary.local import spark
    from tributary.local.process import read_process

    return read_process(spark.SERVICE, workspace.state.run) is not None
