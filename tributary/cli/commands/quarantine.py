"""The commands about events that could not be applied: `quarantine list`, `show` and `replay`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tributary.api.quarantine import QuarantinedEvent, read_quarantine
from tributary.api.tables import LakeTable, find_table, read_table_folders
from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import bytes_text, messages, moment_text, output, print_json, print_table
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import ShowQuarantine
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

quarantine = typer.Typer(
    no_args_is_help=True,
    help="Events that could not be applied: list them with reasons, and apply them once they can be read.",
)
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Such as sales or shop.public.sales.")]


@quarantine.command("list")
def list_events(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Only this table's.")] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the events in quarantine: table, position, reason and message."""
    filesystem, tables = _quarantined_tables(Workspace.open(lake, state))
    if table is not None:
        tables = (find_table(tables, table),)
    found = [(one.name, event) for one in tables for event in read_quarantine(filesystem, one.path)]
    if as_json:
        print_json(
            [{"table": str(name), "position": event.position, **asdict(event)} for name, event in found]
        )
        return
    if not found:
        output.print("Nothing is in quarantine.")
        return
    rows = [
        (str(name), event.position, moment_text(event.quarantined_at), event.reason, event.message)
        for name, event in found
    ]
    print_table(("table", "position", "since (UTC)", "reason", "message"), rows)


@quarantine.command("show")
def show_event(
    table: TableArgument,
    position: Annotated[
        str, typer.Argument(metavar="PARTITION:OFFSET", help="As quarantine list shows it, such as 0:1234.")
    ],
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show one event in full: its origin, the reason for its quarantine, and its raw key and value.

    With --json, the raw bytes are in base64.
    """
    filesystem, tables = _quarantined_tables(Workspace.open(lake, state))
    found = find_table(tables, table)
    event = find_event(read_quarantine(filesystem, found.path), position)
    if as_json:
        print_json({"table": str(found.name), "position": event.position, **asdict(event)})
        return
    for name, value in asdict(event).items():
        if value is not None:
            output.print(f"[bold]{name}[/bold]: ", end="")
            text = bytes_text(value) if isinstance(value, bytes) else str(value)
            output.print(text, markup=False, highlight=False, soft_wrap=True)


@quarantine.command("replay")
def replay(
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Only these tables; else all.")
    ] = None,
    events_from: Annotated[
        Literal["kafka", "bronze"],
        typer.Option("--from", help="Where to read the other events of the same keys."),
    ] = "bronze",
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Apply the events that can be read now, each at its place among the other events of its key.

    An old event never undoes a newer one. Events that still cannot be read stay in quarantine.
    """
    from tributary.cli.run_watch import watch_run
    from tributary.operations.runs.tasks import start_replay

    workspace = Workspace.open(lake, state)
    on_line = typer.echo if as_json else None
    run = start_replay(workspace, messages, tables or (), events_from, on_line)
    if run is None:
        messages.print("Nothing is in quarantine.")
        return
    watch_run(run, messages, is_shown=False)
    if not as_json:
        rows = [
            (name, f"{one.replayed:,}", f"{one.quarantined:,}")
            for name, one in sorted(run.progress.tables.items())
        ]
        print_table(("table", "applied", "left in quarantine"), rows, (False, True, True))


def _quarantined_tables(workspace: Workspace) -> tuple[S3FileSystem, tuple[LakeTable, ...]]:
    lake = workspace.open_lake
    filesystem = lake.files.filesystem
    return filesystem, read_table_folders(filesystem, lake.lake.names, lake.quarantine)


class UnknownEvent(TributaryError):
    """An event that is not in quarantine."""


def find_event(events: tuple[QuarantinedEvent, ...], position: str) -> QuarantinedEvent:
    """Return the event at `partition:offset`. Raises UnknownEvent."""
    for event in events:
        if event.position == position:
            return event
    raise UnknownEvent(
        "No event with this position is in quarantine",
        found=position,
        expected=", ".join(event.position for event in events[:5]) or "no position: the quarantine is empty",
        remedy=ShowQuarantine(),
    )
