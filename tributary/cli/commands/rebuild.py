"""The commands for tables that cannot continue by themselves: `rebuild` and `new-epoch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tributary.api.tables import resolve_names
from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, print_table
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from tributary.operations.runs.ingest_run import Command
    from tributary.operations.runs.run_progress import RunProgress


def rebuild(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.*'; one or more.")
    ],
    events_from: Annotated[
        Literal["kafka", "bronze"],
        typer.Option("--from", help="Where to read all events of the table since its first one."),
    ] = "bronze",
    since_snapshot: Annotated[
        bool,
        typer.Option(
            "--since-snapshot",
            help="Use only the events since the last snapshot. The snapshot has read all rows of that time, "
            "so rows whose deletes were missed disappear.",
        ),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Rebuild tables from all their events. Each new table replaces the old one in a single commit.

    Readers see the old rows until that commit, and time travel still reaches them afterwards. A column whose
    type has changed gets a type that holds all its values, so a rebuild also unblocks a table after such a
    change. The next ingest continues where the rebuild ended. No ingest may run during a rebuild.
    """
    options = ["--since-snapshot"] if since_snapshot else []
    progress = _run(Workspace.open(lake, state), "rebuild", events_from, tables, as_json, options)
    if not as_json:
        rows = [
            (name, f"{one.rows:,}", f"{one.events:,}", f"{one.quarantined:,}")
            for name, one in sorted(progress.tables.items())
        ]
        print_table(("table", "rows", "of events", "in quarantine"), rows, (False, True, True, True))


def new_epoch(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.*'; one or more.")
    ],
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Let tables continue at the beginning of their Kafka topics after the topics were deleted and recreated.

    The rows stay, and every event of the new topic counts as later. Events that only the deleted topic held
    are lost to the table, unless Debezium takes a new snapshot. docs/operate.md says how to check that. A
    table whose topic has not changed is refused.
    """
    progress = _run(Workspace.open(lake, state), "new-epoch", "kafka", tables, as_json)
    if not as_json:
        for name in sorted(progress.tables):
            output.print(
                f"{name} will continue at the beginning of its topic.", markup=False, highlight=False
            )


def _run(
    workspace: Workspace,
    command: Command,
    events_from: Literal["kafka", "bronze"],
    tables: list[str],
    as_json: bool,
    options: Sequence[str] = (),
) -> RunProgress:
    from tributary.cli.run_watch import watch_run
    from tributary.operations.kafka_topics import read_table_names
    from tributary.operations.runs.ingest_run import start_ingest

    workspace.require("kafka")
    known = read_table_names(workspace.settings.kafka_bootstrap, workspace.lake)
    wanted = resolve_names(tables, known)
    on_line = typer.echo if as_json else None
    run = start_ingest(workspace, messages, command, events_from, wanted, on_line=on_line, options=options)
    watch_run(run, messages, is_shown=False)
    return run.progress
