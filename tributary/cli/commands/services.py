"""The commands for the servers of this machine: `up`, `down` and `status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    Environment,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.left_out_view import left_out_facts, print_left_out
from tributary.cli.orphan_view import orphan_text
from tributary.cli.outcome_view import outcome_facts, print_outcome
from tributary.cli.rendering import messages, output, print_json, print_table
from tributary.cli.steps_view import print_steps
from tributary.contract.remedies import as_sentence, in_words
from tributary.operations.remedy_words import remedy_words
from tributary.operations.snapshots.view import paragraph, snapshot_facts
from tributary.operations.verify.view import examples_of, sentence, verification_facts, verified_text
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from connectors.connect_rest import ConnectorStatus
    from tributary.local.status import PipelineStatus
    from tributary.operations.table_states import TableState

SOME_TABLES_LEFT_OUT = 3
"""The exit status of a start that has left out tables."""


def up(
    resnapshot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Let Debezium forget its position in this source, and take a new snapshot. This is needed "
            "if the database no longer holds changes that Debezium has not read. Repeat the option for "
            "several sources.",
        ),
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Start the pipeline on this machine: PostgreSQL, Kafka, Kafka Connect with its connectors, and S3.

    A table that cannot be taken is left out: its reason and remedy are shown, and all other tables run.
    Once it is mended, it comes in by itself while an ingest runs that follows, and otherwise at the next
    start. The exit status is 3 if tables are left out.

    Servers that run already are left alone, and servers that died are restarted. If the lake file names a
    database of your own, Tributary reads that one, and the local PostgreSQL only holds bronze's catalog.
    """
    from tributary.cli.startup_view import start_pipeline
    from tributary.operations.snapshots.keeper import described, notice_changes, record_files

    workspace = Workspace.open(lake, state)
    anew = [workspace.lake.source(name) for name in resnapshot or ()]
    pipeline = start_pipeline(workspace, messages, resnapshot=anew)
    for source in anew:
        record_files(workspace).forget(source.name)
    requests = notice_changes(workspace)
    for request in requests:
        messages.print(f"  {described(request)}", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json(
            {
                "changed": pipeline.changed,
                "warnings": pipeline.warnings,
                "left_out": [{"table": each.table, **left_out_facts(each)} for each in pipeline.left_out],
                "read_again": [{"table": str(r.table), "reasons": r.reasons} for r in requests],
                "seconds": pipeline.seconds,
            }
        )
    elif pipeline.changed:
        output.print(f"The pipeline is up after {pipeline.seconds:.1f} s.", highlight=False)
    else:
        output.print("The pipeline was up already.")
    if pipeline.left_out:
        raise typer.Exit(SOME_TABLES_LEFT_OUT)


def down(state: StateFolderPath = DEFAULT_STATE_FOLDER, as_json: AsJson = False) -> None:
    """Stop all servers of the state folder. Their data is kept, and the next tributary up resumes from it."""
    from tributary.local import pipeline
    from tributary.local.state import StateFolder

    stopped = pipeline.down(StateFolder(state))
    if as_json:
        print_json({"stopped": stopped})
    else:
        output.print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.", highlight=False)


def status(
    on_aws: Annotated[
        bool, typer.Option("--aws", help="Show the deployed lake instead of this machine.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show the state of the servers, the connectors and the tables.

    A table is blocked if a run stopped it until a person acts. The status shows the reason and the remedy
    even after the run has ended. A table's lag is the number of events in its Kafka topic that it has not
    applied. A table is waiting if it has events to apply and no ingest is running.

    A table is left out if it cannot be taken. Once it is mended, it comes in by itself within a minute
    while an ingest runs that follows, and otherwise at the next tributary up.

    A table is an orphan if its source no longer has it, or if the lake file excludes it: see
    tributary orphans. A table differs, or is read again, after a change of its source without an event: see
    tributary snapshot. A table also differs if a verification has found rows that do: see tributary verify.
    "Verified as of" is the time as of which all of its rows were found equal to the source's.

    The exit status is 0 only if all servers and connectors run and no table is blocked, differs or is left
    out. With --aws, jobs take the place of servers, and the latest job must not have failed.
    """
    if on_aws:
        _say_how_the_deployed_lake_is(lake, environment, as_json=as_json)
        return
    from tributary.local.status import read_status
    from tributary.operations.chosen_steps import read_chosen_steps
    from tributary.operations.kept_commits import FILE, kept_commits
    from tributary.operations.table_lag import QuietTables
    from tributary.operations.table_states import read_table_states

    workspace = Workspace.open(lake, state)
    found = read_status(workspace.state, has_kafka=bool(workspace.lake.connected_sources))
    with kept_commits(workspace.state.path / FILE) as commits:
        tables = read_table_states(workspace, found, QuietTables(commits))
    has_s3 = any(service.name == "s3" and service.state == "running" for service in found.services)
    steps = read_chosen_steps(workspace) if has_s3 else None
    is_well = found.is_well and all(table.is_well for table in tables)
    if as_json:
        print_json(
            {**_facts(found, tables, is_well=is_well), "steps": None if steps is None else asdict(steps)}
        )
    else:
        _print_status(found, tables)
        print_steps(steps)
    if not is_well:
        raise typer.Exit(1)


def _say_how_the_deployed_lake_is(lake_file: Path, environment: str | None, *, as_json: bool) -> None:
    from tributary.aws.session import aws_session
    from tributary.cli.aws.remedy_words import worded_for_aws
    from tributary.cli.aws.status_view import print_status, status_facts
    from tributary.contract.lake import read_lake
    from tributary.operations.aws.deployed_lake import DeployedLake
    from tributary.operations.aws.status import read_status

    lake = read_lake(lake_file, environment)
    with worded_for_aws(), aws_session(lake, lake_file) as session:
        found = read_status(DeployedLake(lake, session))
    if as_json:
        print_json(status_facts(found))
    else:
        print_status(found)
    if not found.is_well:
        raise typer.Exit(1)


def _facts(found: PipelineStatus, tables: Sequence[TableState], *, is_well: bool) -> dict[str, Any]:
    return {
        "is_well": is_well,
        "services": [asdict(service) for service in found.services],
        "connectors": [
            {
                "name": one.name,
                "is_running": one.is_running,
                "state": one.state,
                "failure": one.failure,
                "remedy": in_words(one.remedies, remedy_words) or None,
            }
            for one in found.connectors
        ],
        "tables": [
            {
                "table": str(one.table),
                "events_behind": one.behind,
                **(
                    left_out_facts(one.left_out) if one.left_out else outcome_facts(one.outcome, remedy_words)
                ),
                "state": one.state,
                "orphan": None if one.orphan is None else one.orphan.reason,
                "paused_since": None if one.paused is None else one.paused.since,
                "snapshot": None if one.snapshot is None else snapshot_facts(one.snapshot),
                "verified": verification_facts(one.verified),
            }
            for one in tables
        ],
    }


def _print_status(found: PipelineStatus, tables: Sequence[TableState]) -> None:
    rows = [
        (
            service.name,
            service.state,
            service.port or "-",
            service.pid or "-",
            "-" if service.resident_bytes is None else f"{service.resident_bytes / 1_000_000:,.0f} MB",
            _uptime_text(service.uptime_seconds),
        )
        for service in found.services
    ]
    print_table(("server", "state", "port", "pid", "memory", "up for"), rows, (False, False, *[True] * 4))
    if found.connectors:
        output.print()
        print_table(("connector", "state"), [(one.name, _connector_text(one)) for one in found.connectors])
    if tables:
        output.print()
        print_table(
            ("table", "state", "events behind", "verified as of (UTC)"),
            [
                (
                    str(one.table),
                    one.state,
                    "-" if one.behind is None else f"{one.behind:,}",
                    verified_text(one.verified),
                )
                for one in tables
            ],
            (False, False, True, False),
        )
    for one in tables:
        if one.left_out is not None:
            output.print()
            print_left_out(one.left_out, output)
        elif one.outcome is not None and one.state != "kept":
            print_outcome(one.table, one.outcome, remedy_words)
        elif one.paused is not None:
            text = f"\n{one.table} is paused since {one.paused.since}: tributary resume {one.table}"
            output.print(text, markup=False, highlight=False, soft_wrap=True)
        elif one.orphan is not None and one.orphan.state != "kept":
            output.print(f"\n{orphan_text(one.orphan)}", markup=False, highlight=False, soft_wrap=True)
        if one.snapshot is not None:
            output.print(f"\n{paragraph(one.snapshot)}", markup=False, highlight=False, soft_wrap=True)
        if one.verified is not None and (one.verified.differences or _is_unverified(one)):
            output.print(f"\n{sentence(one.verified)}", markup=False, highlight=False, soft_wrap=True)
            for text in examples_of(one.verified):
                output.print(f"  {text}", markup=False, highlight=False, soft_wrap=True)


def _is_unverified(table: TableState) -> bool:
    """Tell whether a table is not verified for a reason that the status does not say anyway."""
    from tributary.operations.table_states import CUT_OFF

    has_problem = table.verified is not None and table.verified.problem is not None
    return has_problem and table.state in ("well", "waiting", "loading", CUT_OFF)


def _uptime_text(seconds: float | None) -> str:
    return "-" if seconds is None else str(timedelta(seconds=int(seconds)))


def _connector_text(connector: ConnectorStatus) -> str:
    if connector.failure is not None:
        return f"FAILED: {as_sentence(connector.failure)} {in_words(connector.remedies, remedy_words)}"
    return "RUNNING" if connector.is_running else f"{connector.state}, its task does not run"
