"""The command `ingest`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tributary.api.tables import resolve_names
from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output, tell
from tributary.contract.table_name import TableName
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace


def ingest(
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep running until Ctrl-C, instead of until all is caught up.")
    ] = False,
    events_from: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="kafka|bronze|files:URI",
            help="Read the events from Kafka, from bronze, which keeps them forever, or from the files that "
            "another S3 sink has written: files:s3://bucket/prefix, or files: and a folder.",
        ),
    ] = "kafka",
    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps",
            help="With files: accept that no file holds an event for some offsets. With DynamoDB: "
            "continue after records that the stream has deleted.",
        ),
    ] = False,
    tables: Annotated[
        list[str] | None,
        typer.Option("--tables", metavar="NAME", help="Only these, such as sales or 'public.*'; repeatable."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="From Kafka, without --follow: how long Kafka may take to hold all that the source has "
            "committed. A first snapshot can take long. 0: take what is in Kafka now.",
        ),
    ] = 300.0,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Bring the lake's tables up to date with their source. With --follow, keep them up to date.

    Each table starts from the position in its last commit. So you can stop a run at any time, and you can
    read from bronze and then from Kafka. Ctrl-C lets the current commits finish.

    Without --follow, the run ends when the lake holds all that the source had committed when it began. It
    first waits until Kafka holds that. From bronze, it ends at what bronze holds, which is seconds less.

    The exit status is 0 only if no table has an error. With --json, each report of the Spark app is a line of
    JSON.
    """
    from tributary.cli.run_watch import watch_run
    from tributary.operations.alerts.keeper import AlertKeeper
    from tributary.operations.kafka_wait import wait_until_kafka_holds_all, wait_until_tables_are_read
    from tributary.operations.known_tables import known_tables
    from tributary.operations.lost_connections import ConnectionKeeper
    from tributary.operations.reconcile.barrier import Patience
    from tributary.operations.runs.ingest_run import FILES, start_ingest
    from tributary.operations.snapshots.keeper import SnapshotKeeper
    from tributary.operations.verify.rounds import VerifyKeeper

    chosen = events_source(events_from)
    workspace = Workspace.open(lake, state)
    wanted: tuple[TableName, ...] = ()
    if chosen.startswith(FILES):
        wanted = tuple(TableName.parse(table) for table in tables or ())
    else:
        has_kafka = bool(workspace.lake.connected_sources)
        if has_kafka:
            workspace.require("kafka")
        if has_kafka and chosen == "kafka" and not follow and wait > 0:
            with messages.status("waiting for Kafka") as shown:
                patience = Patience.of(wait, shown.update)
                wait_until_tables_are_read(workspace, patience, tell)
                wait_until_kafka_holds_all(workspace, patience)
        if tables:
            known = known_tables(workspace)
            wanted = resolve_names(tables, known)
    run = start_ingest(
        workspace,
        messages,
        events_from=chosen,
        options=["--allow-gaps"] if allow_gaps else [],
        tables=wanted,
        follow=follow,
        on_line=typer.echo if as_json else None,
    )
    keeper = SnapshotKeeper(workspace, tell)
    alerts = AlertKeeper(workspace, tell, remedy_words)
    has_snapshots = chosen == "kafka" and bool(workspace.lake.connected_sources)
    with ExitStack() as beside:
        if follow and has_snapshots:
            beside.enter_context(keeper.running())
            beside.enter_context(ConnectionKeeper.of(workspace, tell).running())
        if follow and chosen == "kafka":
            beside.enter_context(alerts.running())
            beside.enter_context(VerifyKeeper(workspace, tell).running())
        watch_run(run, messages if as_json else output, is_shown=not as_json)
    if has_snapshots and not follow:
        # The run has applied what was read again.
        keeper.step()


def events_source(events_from: str) -> str:
    """Return the source as the Spark app takes it: a folder of this machine becomes an absolute path."""
    kind, separator, location = events_from.partition(":")
    if events_from in ("kafka", "bronze"):
        return events_from
    if kind != "files" or not location:
        raise typer.BadParameter("expected kafka, bronze or files:URI", param_hint="--from")
    if location.startswith("s3://"):
        # Hadoop's name for its S3 client.
        location = f"s3a://{location.removeprefix('s3://')}"
    elif "://" not in location:
        location = str(Path(location).absolute())
    return f"{kind}{separator}{location}"
