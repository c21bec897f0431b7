"""The command `ingest`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.commands.options import DEFAULT_LAKE_FILE, DEFAULT_STATE_FOLDER, AsJson, LakeFile, StateFolderPath
from cli.lake_tables import resolve_names
from cli.rendering import messages, output
from cli.workspace import Workspace


def ingest(
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until Ctrl-C, instead of until all is caught up.")
    ] = False,
    events_from: Annotated[
        Literal["kafka", "bronze"],
        typer.Option(
            "--from", help="Read the events from Kafka, or from what bronze holds of them for ever."
        ),
    ] = "kafka",
    tables: Annotated[
        list[str] | None,
        typer.Option("--tables", metavar="NAME", help="Only these, such as sales or 'public.*'; repeatable."),
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Bring the lake's tables up to their source, and with --follow keep them there.

    Every table starts from the position in its last commit, so it does no harm to stop a run at any time,
    or to read from bronze and then from Kafka. Ctrl-C lets the commits that are being written finish.

    The exit status is 0 only if every table is well. With --json every report of the Spark app is a line
    of JSON.
    """
    from cli.ingest_run import start_ingest
    from cli.kafka_topics import read_table_names
    from cli.run_watch import watch_run

    workspace = Workspace.open(lake, state)
    workspace.require("kafka")
    known = read_table_names(workspace.settings.kafka_bootstrap, workspace.lake.names) if tables else ()
    run = start_ingest(
        workspace,
        messages,
        events_from=events_from,
        tables=resolve_names(tables or (), known),
        follow=follow,
        on_line=typer.echo if as_json else None,
    )
    watch_run(run, messages if as_json else output, is_shown=not as_json)
