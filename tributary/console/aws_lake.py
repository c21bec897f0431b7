"""A deployed lake, as the console shows it: read with the user's own credentials, and never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from botocore.exceptions import ClientError

from tributary.api.last_commits import LastCommits
from tributary.api.open_lake import OpenLake, TableSummary, open_deployed
from tributary.aws.session import told_errors
from tributary.console.view import LakeView, OpenAlert, Part, Pipeline
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words
from tributary.contract.table_name import TableName
from tributary.operations.aws import status
from tributary.operations.aws.connectors import Connector
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import JobRun, elapsed_text, failure, moment
from tributary.operations.aws.log_groups import read_last_events, read_log_groups
from tributary.operations.aws.status import LakeStatus
from tributary.operations.logs import LogEntry, Redaction, parse_log
from tributary.operations.table_states import TableState

_ALARMS_OF_ONE_REQUEST = 100
_UNKNOWN = Pipeline(False, (), None, None, "Jobs", ())


@dataclass(frozen=True)
class AwsLake:
    """The lake of a lake file, on AWS. CloudWatch has a value a minute, and charges for each."""

    deployed: DeployedLake
    lake_file: Path
    words: Words
    seconds: float = 60.0
    first_log: str = ""
    actions: None = None
    has_alarms: bool = True
    _commits: LastCommits = field(default_factory=LastCommits, repr=False)

    @property
    def lake(self) -> Lake:
        return self.deployed.lake

    def open(self) -> OpenLake:
        return self._opened

    @cached_property
    def _opened(self) -> OpenLake:
        with self._told():
            return open_deployed(self.lake, self.deployed.session)

    def read_view(self) -> LakeView:
        now, shown = datetime.now(UTC), _UNKNOWN
        try:
            with self._told():
                found = status.read_status(self.deployed)
                shown = pipeline_of(found, self.words)
                return LakeView(
                    now, shown, table_states(found, self.open().tables(self._commits)), steps=found.steps
                )
        except TributaryError as error:
            return LakeView(now, shown, (), error.text(self.words))

    def source_types(self, table: TableName) -> Mapping[str, str]:  # noqa: ARG002  No way leads to it.
        return {}

    def open_alerts(self) -> Sequence[OpenAlert]:
        with self._told():
            names = self._alarm_names()
            cloudwatch, prefix = self.deployed.session.cloudwatch, f"{self.deployed.names.resource}-"
            found = [
                alarm
                for first in range(0, len(names), _ALARMS_OF_ONE_REQUEST)
                for alarm in cloudwatch.describe_alarms(
                    AlarmNames=names[first : first + _ALARMS_OF_ONE_REQUEST]
                )["MetricAlarms"]
            ]
        return tuple(
            OpenAlert(
                "alarm",
                one["AlarmName"].removeprefix(prefix),
                one.get("AlarmDescription", ""),
                one["StateUpdatedTimestamp"].isoformat(timespec="seconds"),
                "CloudWatch",
            )
            for one in found
            if one["StateValue"] == "ALARM"
        )

    def _alarm_names(self) -> list[str]:
        """Return the alarms of this lake's stack. Another lake's alarms can have names that begin alike."""
        stack = self.deployed.names.stack("observability")
        pages = self.deployed.session.cloudformation.get_paginator("list_stack_resources")
        try:
            return [
                resource["PhysicalResourceId"]
                for page in pages.paginate(StackName=stack)
                for resource in page["StackResourceSummaries"]
                if resource["ResourceType"] == "AWS::CloudWatch::Alarm" and "PhysicalResourceId" in resource
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":  # There is no such stack.
                return []
            raise

    def log_parts(self) -> Sequence[str]:
        with self._told():
            return tuple(read_log_groups(self.deployed.session.logs, self.deployed.names.log_group("")))

    def read_log(self, part: str) -> Sequence[LogEntry]:
        with self._told():
            lines = read_last_events(self.deployed.session.logs, self.deployed.names.log_group(part))
        return parse_log(part, Redaction.of(())("\n".join(lines)))

    def _told(self) -> AbstractContextManager[None]:
        return told_errors(self.deployed.session.region)


def pipeline_of(found: LakeStatus, words: Words) -> Pipeline:
    """Return the connectors and the jobs as the pages show them."""
    jobs = tuple(_job(found.place, run, words, is_latest=run is found.jobs[0]) for run in found.jobs)
    problem = found.place_problem
    place = () if problem is None else (Part(found.place, "gone", runs=False, problem=problem.text(words)),)
    return Pipeline(
        is_well=found.is_well,
        connectors=tuple(_connector(one) for one in found.connectors),
        kafka=None,
        spark=next((job for job, run in zip(jobs, found.jobs, strict=True) if run.is_active), None),
        title="Jobs, the latest first",
        servers=(*place, *jobs),
    )


def table_states(found: LakeStatus, known: Iterable[TableSummary]) -> tuple[TableState, ...]:
    """Return the states of all tables, by name: the lag from CloudWatch, the last commit from the table."""
    commits = {one.table.name: one.last_commit for one in known}
    measured = {one.table: one for one in found.tables}
    ingests = any(run.is_active for run in found.jobs)
    return tuple(
        TableState(
            name,
            None if (one := measured.get(name)) is None else one.behind,
            None if one is None else one.outcome,
            ingests=ingests,
            commit=commits.get(name),
            verified=None if one is None else one.verified,
            orphan=None if one is None else one.orphan,
            left_out=None if one is None else one.left_out,
            cut_off=one is not None and one.cut_off,
        )
        for name in sorted(measured.keys() | commits.keys())
    )


def _connector(found: Connector) -> Part:
    tasks = f"{found.failed_tasks:,} of its tasks failed" if found.failed_tasks else ""
    state = "" if found.state == "RUNNING" else f"it is {found.state}"
    told = "; ".join(filter(None, (state, tasks, found.reason)))
    return Part(found.name, found.state, runs=found.is_well, problem=None if found.is_well else told)


def _job(place: str, run: JobRun, words: Words, *, is_latest: bool) -> Part:
    is_failed = is_latest and run.state == "failed"
    return Part(
        run.name,
        run.aws_state,
        runs=run.is_active,
        problem=failure(place, run).text(words) if is_failed else None,
        facts={
            "since": moment(run.created),
            "for": elapsed_text(run),
            "id": run.id,
        },
    )
