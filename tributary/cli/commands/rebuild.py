"""The commands that put right what cannot go on by itself: `rebuild` and `new-epoch`."""

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
from tributary.cli.workspace import Workspace

if TYPE_CHECKING:
    from tributary.cli.ingest_run import Command
    from tributary.cli.run_progress import RunProgress


def rebuild(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Such as sales or 'public.*'; one or more.")
    ],
    events_from: Annotated[
        Literal["kafka", "bronze"],
        typer.Option("--from", help="Where the table's events are read from, all since its first one."),
    ] = "bronze",
    since_snapshot: Annotated[
        bool,
        typer.Option(
            "--since-snapshot",
            help="Of the last snapshot, which has read all rows that there were, and of what came after it: "
            "rows that were deleted unseen go.",
        ),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Make tables anew from all their events, each in the place of the old one in a single commit.

    Readers see the old rows until they see the new ones; time travel still reaches the old ones. A column
    whose type has changed gets one that holds all its values: this is what mends a table that such a change
    has blocked. The next ingest goes on from where the rebuild ended. No ingest may run meanwhile.
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
    """Let tables go on at the beginning of their Kafka topics, once those were deleted and made anew.

    The rows stay, and all that the new topic brings is later than they are. What the old topic still held
    when it was deleted is lost to the table, unless Debezium takes a new snapshot: docs/operate.md says how
    to be sure. A table whose topic is the same as before is refused.
    """
    progress = _run(Workspace.open(lake, state), "new-epoch", "kafka", tables, as_json)
    if not as_json:
        for name in sorted(progress.tables):
            output.print(f"{name} goes on at the beginning of its topic.", markup=False, highlight=False)


def _run(
    workspace: Workspace,
    command: Command,
    events_from: Literal["kafka", "bronze"],
    tables: list[str],
    as_json: bool,
    options: Sequence[str] = (),
) -> RunProgress:
    from tributary.cli.ingest_run import start_ingest
    from tributary.cli.kafka_topics import read_table_names
    from tributary.cli.run_watch import watch_run

    workspace.require("kafka")
    known = read_table_names(workspace.settings.kafka_bootstrap, workspace.lake)
    wanted = resolve_names(tables, known)
    on_line = typer.echo if as_json else None
    run = start_ingest(workspace, messages, command, events_from, wanted, on_line=on_line, options=options)
    watch_run(run, messages, is_shown=False)
    return run.progress
