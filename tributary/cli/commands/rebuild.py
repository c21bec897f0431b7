"""The commands for tables that cannot continue by themselves: `rebuild` and `new-epoch`."""

from __future__ import annotations

from typing import Annotated, Literal

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
    from tributary.cli.run_watch import watch_run
    from tributary.operations.runs.tasks import start_rebuild

    workspace, on_line = Workspace.open(lake, state), typer.echo if as_json else None
    run = start_rebuild(workspace, messages, tables, events_from, on_line, since_snapshot=since_snapshot)
    watch_run(run, messages, is_shown=False)
    progress = run.progress
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
    from tributary.cli.run_watch import watch_run
    from tributary.operations.kafka_topics import read_table_names
    from tributary.operations.runs.ingest_run import start_ingest

    workspace, on_line = Workspace.open(lake, state), typer.echo if as_json else None
    workspace.require("kafka")
    wanted = resolve_names(tables, read_table_names(workspace.kafka, workspace.lake))
    run = start_ingest(workspace, messages, "new-epoch", "kafka", wanted, on_line=on_line)
    watch_run(run, messages, is_shown=False)
    progress = run.progress
    if not as_json:
        for name in sorted(progress.tables):
            output.print(
                f"{name} will continue at the beginning of its topic.", markup=False, highlight=False
            )
