"""The lake on this machine, as the console shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from connectors.connect_rest import ConnectorStatus
from tributary.api.open_lake import OpenLake
from tributary.console.actions import Actions
from tributary.console.view import LakeView, OpenAlert, Part, Pipeline
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words, in_words
from tributary.contract.table_name import TableName
from tributary.local import kafka, spark
from tributary.local.process import KeptMemory
from tributary.local.running import read_running_settings
from tributary.local.status import PipelineStatus, ServiceStatus, read_status
from tributary.operations.alerts.keeper import FILE as ALERTS_FILE
from tributary.operations.alerts.sending import channels
from tributary.operations.alerts.sent import read_sent
from tributary.operations.chosen_steps import read_chosen_steps
from tributary.operations.logs import PARTS, LogEntry, Redaction, known_secrets, read_log
from tributary.operations.quarantine_counts import QuarantineCounts
from tributary.operations.remedy_words import remedy_words
from tributary.operations.runs.follower import Follower
from tributary.operations.source_facts import KeptLogs, KeptSizes, read_source_types
from tributary.operations.sourced_lake import passing_errors
from tributary.operations.table_lag import QuietTables
from tributary.operations.table_states import read_table_states
from tributary.operations.workspace import Workspace

_MEMORY_SECONDS = 10.0
_LOG_SECONDS = 10.0
_QUARANTINE_SECONDS = 15.0
"""How old the servers' memory, the databases' logs and the counts of events in quarantine may be."""


@dataclass(frozen=True)
class LocalLake:
    """The lake of a workspace. `follower` is the ingest that this process keeps running, if it does."""

    workspace: Workspace
    follower: Follower | None = None
    words: Words = remedy_words
    seconds: float = 2.0
    first_log: str = spark.SERVICE
    has_alarms: bool = False
    _quiet: QuietTables = field(default_factory=QuietTables, repr=False)
    _memory: KeptMemory = field(default_factory=lambda: KeptMemory(_MEMORY_SECONDS), repr=False)
    _logs: KeptLogs = field(default_factory=lambda: KeptLogs(_LOG_SECONDS, sizes=KeptSizes()), repr=False)
    _quarantined: QuarantineCounts = field(
        default_factory=lambda: QuarantineCounts(_QUARANTINE_SECONDS), repr=False
    )

    @property
    def lake(self) -> Lake:
        return self.workspace.lake

    @property
    def lake_file(self) -> Path:
        return self.workspace.lake_file

    @property
    def actions(self) -> Actions:
        return Actions(self.workspace, self.follower)

    def open(self) -> OpenLake:
        return self.workspace.open_lake

    def read_view(self) -> LakeView:
        """Read the state of the servers, the connectors and all tables, as far as they answer."""
        now, has_kafka = datetime.now(UTC), bool(self.lake.connected_sources)
        found = read_status(self.workspace.state, has_kafka=has_kafka, memory=self._memory)
        running = {one.name for one in found.services if one.state == "running"}
        view = LakeView(now, pipeline_of(found, self.words), (), logs=self._logs.read(self.workspace))
        view = replace(view, problem=self._not_up(has_kafka=has_kafka))
        try:
            view = replace(view, tables=read_table_states(self.workspace, found, self._quiet))
            if "s3" in running:
                quarantined = self._quarantined.read(self.open())
                view = replace(view, steps=read_chosen_steps(self.workspace), quarantined=quarantined)
        except TributaryError as error:
            return replace(view, problem=error.text(self.words))
        except Exception as error:  # noqa: BLE001  A server can go away between two readings: the page says so.
            return replace(view, problem=f"{type(error).__name__}: {error}")
        return view

    def _not_up(self, *, has_kafka: bool) -> str | None:
        """Return why nobody can tell how far the tables are; None: the servers that know run."""
        try:
            read_running_settings(self.workspace.state, *(("kafka", "s3") if has_kafka else ("s3",)))
        except TributaryError as error:
            return error.text(self.words)
        return None

    def source_types(self, table: TableName) -> Mapping[str, str]:
        try:
            return read_source_types(self.workspace, table)
        except passing_errors(self.workspace):
            return {}  # The pipeline page says what does not run.

    def open_alerts(self) -> Sequence[OpenAlert]:
        if self.lake.alerts is None:
            return ()
        sent = read_sent(self.workspace.state.path / ALERTS_FILE)
        return tuple(
            OpenAlert(one.rule, one.subject, one.text, one.since, channel.name)
            for channel in channels(self.lake.alerts)
            for one in sent.get(channel.name, ())
        )

    def log_parts(self) -> Sequence[str]:
        return PARTS

    def read_log(self, part: str) -> Sequence[LogEntry]:
        state = self.workspace.state
        return read_log(state, part, Redaction.of(known_secrets(self.lake, state.read_settings())))


def pipeline_of(found: PipelineStatus, words: Words) -> Pipeline:
    """Return the servers and the connectors as the pages show them."""
    servers = {service.name: _server(service) for service in found.services}
    return Pipeline(
        is_well=found.is_well,
        connectors=tuple(_connector(connector, words) for connector in found.connectors),
        kafka=servers.get(kafka.SERVICE),
        spark=servers.get(spark.SERVICE),
        title="Servers on this machine",
        servers=tuple(servers.values()),
    )


def _connector(found: ConnectorStatus, words: Words) -> Part:
    is_failed = found.failure is not None
    return Part(
        found.name,
        "FAILED" if is_failed else "RUNNING" if found.is_running else found.state,
        runs=found.is_running,
        problem=found.failure,
        remedy=in_words(found.remedies, words) if is_failed else "",
    )


def _server(found: ServiceStatus) -> Part:
    memory, uptime = found.resident_bytes, found.uptime_seconds
    return Part(
        found.name,
        found.state,
        runs=found.state == "running",
        problem=f"The server died. Its log: {found.log}" if found.state == "died" else None,
        log=found.name,
        facts={
            "port": str(found.port or "–"),
            "memory": "–" if memory is None else f"{memory / 1e6:,.0f} MB",
            "up for": "–" if uptime is None else f"{uptime / 60:,.0f} min",
        },
        resident_bytes=memory,
    )
