"""The command `verify`."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
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
    from collections.abc import Mapping

    from tributary.contract.table_name import TableName
    from tributary.operations.aws.linked_lake import LinkedLake
    from tributary.operations.sourced_lake import SourcedLake
    from tributary.operations.verify.record import Verification


def verify(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="Such as sales or 'public.*'. None: all tables."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Do one round after another until Ctrl-C, as [verify] says.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Compare all rows in each round, not only some of them.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="How long the lake may take to catch up if rows differ."
        ),
    ] = 60.0,
    on_aws: Annotated[
        bool, typer.Option("--aws", help="Verify the deployed lake, from a machine in its network.")
    ] = False,
    within: Annotated[
        float | None,
        typer.Option(
            "--within",
            metavar="SECONDS",
            min=0,
            help="Begin with no further table after this time. The next round begins with it.",
        ),
    ] = None,
    publishes: Annotated[
        bool,
        typer.Option("--publish", help="With --aws: send what was found to CloudWatch, for alarms."),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Compare the tables with their sources, part by part, at a small cost.

    The database and this command compute checksums of parts of each table. A round compares the parts whose
    lake rows have changed, and some of the others, up to the number of rows in [verify] of the lake file. A
    table has been compared as a whole once each of its parts was. It then equals its source as of a time,
    which tributary status shows, too.

    Where checksums differ, the rows are compared. A row differs only if the lake has everything that the
    database had, and its row is no newer one. So a lake that is seconds late is no difference.

    With [verify] in the lake file, tributary ingest --follow does all this by itself.

    With --aws, the command reads Kafka and S3 with your credentials, and logs in to a database as its
    connector does. It keeps what it found in the lake's quarantine bucket. With --follow, it also does what
    tributary snapshot does: it finds tables that changed without an event, and lets them be read again.

    The exit status is 1 if a row differs, or a table could not be verified. With --publish, metrics tell of
    that, and the status is 0.
    """
    from tributary.aws.session import told_errors
    from tributary.cli.aws.linked_lake import deployed_lake_with_sources
    from tributary.operations.aws.verification_metrics import publish
    from tributary.operations.snapshots.keeper import SnapshotKeeper
    from tributary.operations.sourced_lake import passing_errors
    from tributary.operations.verify.rounds import VerifyKeeper, Wanted
    from tributary.operations.verify.view import SNAPSHOT, SNAPSHOT_ON_AWS

    if publishes and not on_aws:
        raise typer.BadParameter("only a deployed lake has metrics in CloudWatch", param_hint="--publish")
    with ExitStack() as opened:
        sourced: SourcedLake
        deployed: LinkedLake | None = None
        if on_aws:
            sourced = deployed = opened.enter_context(deployed_lake_with_sources(lake, environment, state))
        else:
            sourced = Workspace.open(lake, state)
            sourced.require("s3")
        shown = opened.enter_context(messages.status("verifying"))
        keeper = VerifyKeeper(sourced, tell, shown.update, wait)
        wanted = Wanted(_names(sourced, tables), None if full else keeper.rules.rows, within)

        def report(found: Mapping[TableName, Verification]) -> None:
            _show(found, SNAPSHOT if deployed is None else SNAPSHOT_ON_AWS, as_json=as_json)
            tell_cloudwatch()

        def tell_cloudwatch() -> None:
            if publishes and deployed is not None:
                session = deployed.deployed.session
                with told_errors(session.region):
                    publish(session.cloudwatch, deployed.lake.name, keeper.known(), datetime.now(UTC))

        if on_aws:
            snapshots = SnapshotKeeper(sourced, tell)
            if follow:
                opened.enter_context(snapshots.running())
            else:
                # What was applied since the last command is over, and no reason to leave a table out.
                try:
                    snapshots.step()
                except passing_errors(sourced) as error:
                    tell(f"The snapshots could not be taken further: {error}")
        if follow:
            keeper.run(wanted, report)
        try:
            found = keeper.step(wanted)
        except passing_errors(sourced):
            tell_cloudwatch()
            raise
        report(found)
    if not publishes and any(one.differences or one.problem for one in found.values()):
        raise typer.Exit(1)


def _names(lake: SourcedLake, tables: list[str] | None) -> tuple[TableName, ...] | None:
    if not tables:
        return None
    from tributary.api.tables import resolve_names
    from tributary.operations.known_tables import known_tables

    return resolve_names(tables, known_tables(lake))


def _show(found: Mapping[TableName, Verification], snapshot: str, *, as_json: bool) -> None:
    from tributary.operations.verify.view import examples_of, sentence, verification_facts

    if as_json:
        print_json([verification_facts(one, snapshot) for _, one in sorted(found.items())])
        return
    if not found:
        output.print("The lake has no tables yet. To fill it, run tributary ingest.")
    for _, one in sorted(found.items()):
        style = "red" if one.differences else "yellow" if one.problem else ""
        output.print(sentence(one, snapshot), style=style, markup=False, highlight=False, soft_wrap=True)
        for text in examples_of(one) if one.differences else ():
            output.print(f"  {text}", markup=False, highlight=False, soft_wrap=True)
