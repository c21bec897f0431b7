"""The commands `pause` and `resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import output, print_json
from tributary.operations.workspace import Workspace

Tables = Annotated[
    list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.*'; one or more.")
]


def pause(
    tables: Tables,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Leave tables as they are, while all others continue. Nothing is lost.

    A running ingest finishes the table's current commit and obeys within seconds. Kafka and bronze keep
    collecting the table's events. The pause outlasts restarts of everything, until tributary resume.
    """
    from tributary.operations import pauses

    changed = pauses.pause(Workspace.open(lake, state), tables)
    if as_json:
        print_json([str(table) for table in changed])
        return
    for table in changed:
        _say(f"{table} is paused. To let it continue, run tributary resume {table}.")
    if not changed:
        _say("All of them were paused already.")


def resume(
    tables: Tables,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Let paused tables continue, each where it was.

    A running ingest applies what came meanwhile, or the next one does.
    """
    from tributary.operations import pauses

    changed = pauses.resume(Workspace.open(lake, state), tables)
    if as_json:
        print_json([str(table) for table in changed])
        return
    for table in changed:
        _say(f"{table} continues.")
    if not changed:
        _say("None of them was paused.")


def _say(text: str) -> None:
    output.print(text, markup=False, highlight=False, soft_wrap=True)
