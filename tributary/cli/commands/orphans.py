"""The commands about tables that their source no longer has: `orphans list`, `keep` and `remove`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, print_json, print_table
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.contract.orphan import DecidedOrphan
    from tributary.operations.orphans import Orphan

orphans = typer.Typer(
    no_args_is_help=True,
    help="Tables that their source no longer has, or that the lake file excludes: list, keep or remove them.",
)
Tables = Annotated[
    list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.old_*'; one or more.")
]


@orphans.command("list")
def list_orphans(
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the lake's orphans, why each is one, and what was decided about it."""
    from tributary.operations.orphans import look_for_orphans

    found = [one for one in look_for_orphans(Workspace.open(lake, state)).values() if not one.is_gone]
    if as_json:
        print_json([_facts(one) for one in found])
    elif found:
        rows = [(str(one.table), one.state, one.reason) for one in found]
        print_table(("table", "state", "reason"), rows)
    else:
        output.print("The lake has no orphans.")


@orphans.command()
def keep(
    tables: Tables,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Keep orphans as they are, and say so in the status instead of asking what to do.

    Their rows stay readable. If the source has the table again, the decision is forgotten and the table is
    read again.
    """
    from tributary.operations import orphans as operations

    kept = operations.keep(Workspace.open(lake, state), tables)
    if as_json:
        print_json([str(table) for table in kept])
        return
    for table in kept:
        _say(f"{table} is kept.")
    if not kept:
        _say("All of them were kept already.")


@orphans.command()
def remove(
    tables: Tables,
    is_confirmed: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    with_events: Annotated[
        bool,
        typer.Option("--events", help="Also delete the tables' events in bronze, and their topics in Kafka."),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Remove orphans from the lake: rows, history, quarantine, and what is recorded about them.

    The command lists what it deletes and asks for confirmation. A table that the lake still follows is
    refused. No ingest may run meanwhile. After an interruption, run the command again.

    The events stay in Kafka and bronze until their retention ends, but no ingest makes the table from them
    again. With --events they are deleted, too, and cannot be restored.

    Example: tributary orphans remove old_orders
    """
    from tributary.operations import orphans as operations

    workspace = Workspace.open(lake, state)
    if with_events:
        workspace.require("postgres")
    found = operations.choose_for_removal(workspace, tables)
    storage = operations.storage_of(workspace)
    contents = {one.table: storage.contents(one.table) for one in found}
    if not is_confirmed:
        for one in found:
            held = contents[one.table]
            told = f"{held.files:,} files, {held.size / 1_000_000:,.1f} MB"
            messages.print(f"{one.table}: {one.reason}. Silver and quarantine have {told}.", soft_wrap=True)
        events = " and their events in bronze and Kafka" if with_events else ""
        typer.confirm(f"Delete {_counted(found)}{events}?", abort=True, err=True)
    removed = [operations.remove(workspace, one) for one in found]
    deleted = _delete_events(workspace, removed) if with_events else {}
    if as_json:
        print_json(
            [
                {
                    "table": str(one.table),
                    "files": contents[one.table].files,
                    "bytes": contents[one.table].size,
                    "events_in_bronze": deleted.get(str(one.topic)),
                }
                for one in removed
            ]
        )
        return
    for gone in removed:
        held = contents[gone.table]
        events = f" Bronze lost {deleted[gone.topic]:,} events." if gone.topic in deleted else ""
        _say(f"{gone.table} is removed: {held.files:,} files, {held.size / 1_000_000:,.1f} MB.{events}")


def _delete_events(workspace: Workspace, removed: Sequence[DecidedOrphan]) -> dict[str | None, int]:
    """Delete the events of removed tables, and return how many bronze had, by topic."""
    from spark_app.reports import EventsDeleted
    from tributary.cli.run_watch import watch_run
    from tributary.operations.orphans import remove_topic
    from tributary.operations.runs.ingest_run import start_ingest

    topics = [one.topic for one in removed if one.topic is not None]
    # The topic goes first: the sink then lands no more of its events while Spark starts.
    for one in removed:
        remove_topic(workspace, one)
    if not topics:
        return {}
    options = [argument for topic in topics for argument in ("--topic", topic)]
    run = start_ingest(workspace, messages, "delete-events", "bronze", options=options)
    watch_run(run, messages, is_shown=False)
    return {one.topic: one.events for one in run.progress.upkeep if isinstance(one, EventsDeleted)}


def _counted(found: Sequence[Orphan]) -> str:
    return "this table" if len(found) == 1 else f"these {len(found)} tables"


def _facts(one: Orphan) -> dict[str, object]:
    return {
        "table": str(one.table),
        "state": one.state,
        "reason": one.reason,
        "since": None if one.decision is None else one.decision.since,
    }


def _say(text: str) -> None:
    output.print(text, markup=False, highlight=False, soft_wrap=True)
