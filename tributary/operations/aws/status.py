"""The status of a deployed lake: its connectors, its jobs, and each table's lag behind the database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice

from spark_app.run.outcome import Outcome
from tributary.contract.acceleration import ChosenSteps
from tributary.contract.aws_names import METRICS_NAMESPACE, IngestMetric, Output
from tributary.contract.table_name import NotATableName, TableName
from tributary.local.left_out import LeftOutTable
from tributary.operations.aws.connectors import Connector, read_connectors
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import JobFailed, JobRun, NothingToRunOn, failure
from tributary.operations.aws.lake_objects import (
    read_chosen_steps,
    read_decided_orphans,
    read_looks,
    read_outcomes,
    read_table_names,
    read_verifications,
)
from tributary.operations.aws.metrics import Metric, find_metrics, read_latest
from tributary.operations.left_out_tables import named
from tributary.operations.orphans import Orphan, orphans_among
from tributary.operations.snapshots.record_files import gone_in, left_out_of
from tributary.operations.table_states import CUT_OFF, cut_off_sources
from tributary.operations.verify.record import Verification
from tributary.operations.verify.view import is_different

_SHOWN_JOBS = 5
_FRESHNESS, _LAG = IngestMetric.FRESHNESS, IngestMetric.LAG
_KAFKA_NAMESPACE, _SINK_LAG = "AWS/Kafka", "SumOffsetLag"


@dataclass(frozen=True)
class TableState:
    """The state of one table. A value that CloudWatch did not get within the last 15 minutes is None.

    fresh_seconds  how far behind the database the table's newest rows were
    behind         events in the table's Kafka topic that the table has not applied
    bronze_behind  events in the topic that bronze does not have
    outcome        None: the table has no errors
    verified       what the last verification has found; None: there was none
    orphan         why the lake no longer follows it, and what was decided about it; None: it is followed
    left_out       why the lake cannot take it; None: it can
    cut_off        whether its source's connector does not run, so that no change of the database arrives
    """

    table: TableName
    fresh_seconds: float | None
    behind: int | None
    bronze_behind: int | None
    outcome: Outcome | None
    verified: Verification | None = None
    orphan: Orphan | None = None
    left_out: LeftOutTable | None = None
    cut_off: bool = False

    @property
    def state(self) -> str:
        if self.left_out is not None:
            return "left out"
        if self.orphan is not None and (self.orphan.decision is not None or self.outcome is None):
            return self.orphan.state
        if self.outcome is not None:
            return self.outcome.state
        if is_different(self.verified):
            return "differs"
        return CUT_OFF if self.cut_off else "well"

    @property
    def is_well(self) -> bool:
        """Return whether the table needs no person. An orphan can wait for a decision."""
        if self.orphan is not None and self.orphan.decision is not None:
            return self.orphan.state == "kept"
        is_blocked = self.outcome is not None and self.outcome.state == "blocked"
        return not (is_blocked or self.left_out or is_different(self.verified))


@dataclass(frozen=True)
class LakeStatus:
    """The state of a deployed lake.

    jobs           the active ones and some that have ended, the latest first
    place_problem  why no job can run
    steps          the steps that the last ingest has chosen
    """

    connectors: tuple[Connector, ...]
    place: str
    place_problem: NothingToRunOn | None
    jobs: tuple[JobRun, ...]
    tables: tuple[TableState, ...]
    steps: ChosenSteps | None = None

    @property
    def last_failure(self) -> JobFailed | None:
        """The failure of the latest job, if it failed."""
        is_failed = self.jobs and self.jobs[0].state == "failed"
        return failure(self.place, self.jobs[0]) if is_failed else None

    @property
    def is_well(self) -> bool:
        return (
            all(one.is_well for one in self.connectors)
            and self.place_problem is None
            and self.last_failure is None
            and all(one.is_well for one in self.tables)
        )


def read_status(deployed: DeployedLake) -> LakeStatus:
    """Read the status of the deployed lake. Raises NotDeployed."""
    problem, jobs = _read_jobs(deployed)
    connectors = _read_connectors(deployed)
    cut_off = cut_off_sources(deployed.lake, {one.name for one in connectors if one.is_well})
    return LakeStatus(
        connectors=connectors,
        place=deployed.job_place.name,
        place_problem=problem,
        jobs=jobs,
        tables=_read_tables(deployed, cut_off),
        steps=read_chosen_steps(deployed.session.s3, deployed.output("lake", Output.QUARANTINE)),
    )


def _read_connectors(deployed: DeployedLake) -> tuple[Connector, ...]:
    if not deployed.lake.connected_sources:
        return ()
    names: list[str] = json.loads(deployed.output("connect", Output.CONNECTORS))
    found = read_connectors(deployed.session, deployed.names.resource, names)
    if deployed.session.aws.connect.running:
        return found
    return tuple(one for one in found if one.state != "MISSING")


def _read_jobs(deployed: DeployedLake) -> tuple[NothingToRunOn | None, tuple[JobRun, ...]]:
    place = deployed.job_place
    try:
        place.require_usable()
    except NothingToRunOn as problem:
        return problem, ()
    runs = {run.id: run for run in (*place.active(), *place.recent())}
    latest = sorted(runs.values(), key=lambda run: run.created, reverse=True)
    ended = islice((run for run in latest if not run.is_active), _SHOWN_JOBS)
    shown = [*(run for run in latest if run.is_active), *ended]
    return None, tuple(sorted(shown, key=lambda run: run.created, reverse=True))


def _read_tables(deployed: DeployedLake, cut_off: Collection[str]) -> tuple[TableState, ...]:
    s3, names = deployed.session.s3, deployed.lake.names
    silver, quarantine = (deployed.output("lake", key) for key in (Output.SILVER, Output.QUARANTINE))
    outcomes, verified = read_outcomes(s3, names, quarantine), read_verifications(s3, quarantine)
    fresh, behind = (_read_measured(deployed, name) for name in (_FRESHNESS, _LAG))
    bronze = _read_sink_lags(deployed)
    stored, decided = read_table_names(s3, names, silver), read_decided_orphans(s3, quarantine)
    looks = read_looks(s3, deployed.lake, quarantine)
    left_out = named(left_out_of(deployed.lake, looks))
    tables = {*stored, *outcomes, *fresh, *behind, *bronze, *decided, *left_out}
    gone = gone_in(looks.values())
    orphans = orphans_among(tables, deployed.lake, gone, frozenset(stored), decided)
    return tuple(
        TableState(
            table=table,
            fresh_seconds=fresh.get(table),
            behind=_whole(behind.get(table)),
            bronze_behind=_whole(bronze.get(table)),
            outcome=outcomes.get(table),
            verified=verified.get(table),
            orphan=orphans.get(table),
            left_out=left_out.get(table),
            cut_off=table.source in cut_off,
        )
        for table in sorted(tables)
        if table not in orphans or not orphans[table].is_gone
    )


def _read_measured(deployed: DeployedLake, name: str) -> Mapping[TableName, float]:
    """Return the Spark app's latest value for each table."""
    cloudwatch = deployed.session.cloudwatch
    metrics = find_metrics(cloudwatch, METRICS_NAMESPACE, name, {"Lake": deployed.lake.name})
    latest = read_latest(cloudwatch, [metric for metric in metrics if metric.dimension("Table")])
    named = {_table_named(metric): value for metric, value in latest.items()}
    return {table: value for table, value in named.items() if table is not None}


def _table_named(metric: Metric) -> TableName | None:
    # `spark_app.metrics` writes non-ASCII characters as Python's escapes.
    text = metric.dimension("Table") or ""
    try:
        return TableName.parse(text.encode().decode("unicode_escape") if "\\" in text else text)
    except (NotATableName, UnicodeDecodeError):
        return None


def _read_sink_lags(deployed: DeployedLake) -> Mapping[TableName, float]:
    """Return how far bronze lags behind the topics, which MSK measures by the sink's consumer group."""
    if not deployed.lake.connected_sources:
        return {}
    cloudwatch, names = deployed.session.cloudwatch, deployed.lake.names
    dimensions = {
        # arn:partition:kafka:region:account:cluster/NAME/UUID
        "Cluster Name": deployed.output("streaming", Output.KAFKA_CLUSTER).split("/")[1],
        "Consumer Group": f"connect-{names.bronze_connector}",
    }
    metrics = find_metrics(cloudwatch, _KAFKA_NAMESPACE, _SINK_LAG, dimensions)
    latest = read_latest(cloudwatch, metrics)
    named = {
        deployed.lake.table_of_topic(metric.dimension("Topic") or ""): value
        for metric, value in latest.items()
    }
    return {table: value for table, value in named.items() if table is not None}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
