"""The commands about the servers of this machine: `up`, `down` and `status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from cli.commands.options import DEFAULT_LAKE_FILE, DEFAULT_STATE_FOLDER, AsJson, LakeFile, StateFolderPath
from cli.rendering import messages, output, print_json, print_table
from cli.workspace import Workspace

if TYPE_CHECKING:
    from cli.table_lag import TableLag
    from connectors.connect_rest import ConnectorStatus
    from local.status import PipelineStatus


def up(
    lake: LakeFile = DEFAULT_LAKE_FILE, state: StateFolderPath = DEFAULT_STATE_FOLDER, as_json: AsJson = False
) -> None:
    """Start the pipeline on this machine: PostgreSQL, Kafka, Kafka Connect with its connectors, and S3.

    What runs already is left alone; what has died is started again. Where the lake file names a database of
    your own, that one is read, and the local PostgreSQL only holds bronze's catalog.
    """
    from cli.startup_view import start_pipeline

    workspace = Workspace.open(lake, state)
    pipeline = start_pipeline(workspace, messages)
    if as_json:
        print_json({"changed": pipeline.changed, "warnings": pipeline.warnings, "seconds": pipeline.seconds})
    elif pipeline.changed:
        output.print(f"The pipeline is up after {pipeline.seconds:.1f} s.", highlight=False)
    else:
        output.print("The pipeline was up already.")


def down(state: StateFolderPath = DEFAULT_STATE_FOLDER, as_json: AsJson = False) -> None:
    """Stop all that runs in the state folder. Everything is kept: the next up goes on from there."""
    from local import pipeline
    from local.state import StateFolder

    stopped = pipeline.down(StateFolder(state))
    if as_json:
        print_json({"stopped": stopped})
    else:
        output.print(f"Stopped {', '.join(stopped)}." if stopped else "Nothing was running.", highlight=False)


def status(
    lake: LakeFile = DEFAULT_LAKE_FILE, state: StateFolderPath = DEFAULT_STATE_FOLDER, as_json: AsJson = False
) -> None:
    """Say how the servers, the connectors and the tables are.

    A table is behind by the events that its topic in Kafka holds and it has not applied yet: if that grows,
    no ingest runs or the table is not well, which tributary ingest tells.

    The exit status is 0 only if all servers and connectors run.
    """
    from cli.table_lag import read_lags
    from local.status import read_status

    workspace = Workspace.open(lake, state)
    found = read_status(workspace.state)
    running = {service.name for service in found.services if service.state == "running"}
    lags = read_lags(workspace) if {"kafka", "s3"} <= running else ()
    if as_json:
        print_json(_facts(found, lags))
    else:
        _tell(found, lags)
    if not found.is_well:
        raise typer.Exit(1)


def _facts(found: PipelineStatus, lags: Sequence[TableLag]) -> dict[str, Any]:
    return {
        "is_well": found.is_well,
        "services": [asdict(service) for service in found.services],
        "connectors": [
            {"name": one.name, "is_running": one.is_running, "state": one.state, "failure": one.failure}
            for one in found.connectors
        ],
        "tables": [{"table": str(lag.table), "events_behind": lag.behind} for lag in lags],
    }


def _tell(found: PipelineStatus, lags: Sequence[TableLag]) -> None:
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
    if lags:
        output.print()
        print_table(
            ("table", "events behind"), [(str(lag.table), f"{lag.behind:,}") for lag in lags], (False, True)
        )


def _uptime_text(seconds: float | None) -> str:
    return "-" if seconds is None else str(timedelta(seconds=int(seconds)))


def _connector_text(connector: ConnectorStatus) -> str:
    if connector.failure is not None:
        return f"FAILED: {connector.failure}"
    return "RUNNING" if connector.is_running else f"{connector.state}, its task does not run"
