"""The console shows a deployed lake as AWS reports it, and names what it cannot read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import boto3
import pytest

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from tests.cli.deployed import ACCOUNT, ITEMS, NAMES, REGION, Deployed, deploy, moto_aws
from tests.console.views import commit
from tributary.api.lake_files import LocalFiles
from tributary.api.last_commits import LastCommits
from tributary.api.open_lake import OpenLake, TableSummary
from tributary.api.table import Table
from tributary.aws.session import AwsError, AwsSession
from tributary.cli.aws.remedy_words import remedy_words
from tributary.console.aws_lake import AwsLake, pipeline_of, table_states
from tributary.console.console import Console
from tributary.contract.aws import Aws
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName
from tributary.local.left_out import LeftOutTable
from tributary.operations.aws.connectors import Connector
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import JobRun
from tributary.operations.aws.status import LakeStatus
from tributary.operations.aws.status import TableState as Measured

if TYPE_CHECKING:
    from mypy_boto3_logs.type_defs import InputLogEventTypeDef

ORDERS, USERS = TableName("shop", "public", "orders"), TableName("shop", "public", "users")
BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)


class WithoutTables:
    """A lake before its first commit."""

    def tables(self, _: LastCommits) -> tuple[TableSummary, ...]:
        return ()


class Shown(AwsLake):
    """A lake whose tables are not read: PyArrow's client of S3 does not see moto."""

    def open(self) -> OpenLake:
        return cast(OpenLake, WithoutTables())


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    with moto_aws(monkeypatch):
        yield deploy(has_kafka=False)


def shown() -> AwsLake:
    lake = parse_lake(ITEMS)
    session = AwsSession(boto3.Session(region_name=REGION), cast(Aws, lake.aws), ACCOUNT)
    return Shown(DeployedLake(lake, session), Path("lake.toml"), remedy_words)


def run(state: str = "running", *, number: int = 1) -> JobRun:
    in_aws_s_words = {"running": "RUNNING", "failed": "FAILED"}[state]
    is_over = state != "running"
    return JobRun(
        f"s-{number}",
        "tributary-shop-follow",
        "step",
        "failed" if is_over else "running",
        in_aws_s_words,
        BEGAN,
        BEGAN if is_over else None,
        "Exit status 137" if is_over else None,
        (),
    )


def test_a_blocked_table_is_named_with_a_remedy_for_aws(deployed: Deployed) -> None:
    blocked = Outcome("blocked", "2026-11-20T10:00:00+00:00", "a type has changed")
    deployed.put("quarantine", f"shop/public/orders/{OUTCOME_FILE}", blocked.to_json())
    deployed.put_silver_table("users")
    view = shown().read_view()
    assert view.problem is None
    states = {str(one.table): one.state for one in view.tables}
    assert states == {str(ORDERS): "blocked", str(USERS): "orphan"}
    assert [one.table for one in view.to_look_at] == [ORDERS]
    assert not view.is_well


@pytest.mark.usefixtures("deployed")
def test_a_lake_without_a_job_is_well_and_its_spark_app_is_stopped() -> None:
    view = shown().read_view()
    assert view.is_well
    assert (view.pipeline.spark, view.pipeline.kafka, view.pipeline.servers) == (None, None, ())


def test_a_lake_that_is_not_deployed_is_told_in_the_words_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto_aws(monkeypatch):
        view = shown().read_view()
    assert "cdk deploy" in (view.problem or "")
    assert not view.is_well


def test_the_latest_job_is_the_spark_app_while_it_runs_and_a_problem_once_it_failed() -> None:
    def pipeline(*runs: JobRun) -> LakeStatus:
        return LakeStatus((), "cluster j-1", None, runs, ())

    running = pipeline_of(pipeline(run(), run("failed", number=2)), remedy_words)
    assert running.spark is not None
    assert running.spark.state == "RUNNING"
    assert running.is_well
    assert running.to_look_at == ()
    failed = pipeline_of(pipeline(run("failed")), remedy_words)
    assert failed.spark is None
    assert not failed.is_well
    assert "Exit status 137" in (failed.to_look_at[0].problem or "")


def test_a_connector_tells_its_state_its_failed_tasks_and_the_reason() -> None:
    connectors = (
        Connector("debezium", "RUNNING", tasks=1),
        Connector("iceberg", "RUNNING", failed_tasks=2),
        Connector("other", "FAILED", reason="The slot is gone"),
    )
    found = pipeline_of(LakeStatus(connectors, "cluster j-1", None, (), ()), remedy_words)
    assert [one.problem for one in found.connectors] == [
        None,
        "2 of its tasks failed",
        "it is FAILED; The slot is gone",
    ]
    assert not found.is_well


def test_a_table_has_its_lag_from_cloudwatch_and_its_commit_from_its_files() -> None:
    measured = (Measured(ORDERS, 1.5, 7, None, None),)
    files = LocalFiles("http://127.0.0.1:1", "key", "secret")
    summary = TableSummary(
        Table(USERS, "s3://silver/users", files, ""), "merge_on_read", "hard", commit(), "1"
    )
    orders, users = table_states(LakeStatus((), "", None, (), measured), [summary])
    assert (orders.table, orders.behind, orders.commit, orders.state) == (ORDERS, 7, None, "waiting")
    assert (users.table, users.behind, users.commit) == (USERS, None, commit())
    (following,) = table_states(LakeStatus((), "", None, (run(),), measured), [])
    assert following.state == "loading"


def test_what_the_status_says_of_a_table_is_shown_in_the_console() -> None:
    left_out = LeftOutTable(table=str(USERS), reasons=("no key",), remedies=("Add one.",))
    measured = (
        Measured(ORDERS, 1.5, 0, None, None, cut_off=True),
        Measured(USERS, None, None, None, None, left_out=left_out),
    )
    shown = table_states(LakeStatus((), "", None, (), measured), [])
    assert [one.state for one in shown] == [one.state for one in measured] == ["cut off", "left out"]


@pytest.mark.usefixtures("deployed")
def test_logs_of_all_streams_are_shown_in_order_of_time_and_without_secrets() -> None:
    logs, group = boto3.client("logs", REGION), NAMES.log_group("connect/debezium")
    logs.create_log_group(logGroupName=NAMES.log_group("kafka"))
    logs.create_log_group(logGroupName=group)
    now = round(time.time() * 1000)
    for stream, entries in {
        "worker-1": ((1, "[2026-11-20 10:00:01,000] INFO begin"), (3, "[2026-11-20 10:00:03,000] ERROR end")),
        "worker-2": ((2, '[2026-11-20 10:00:02,000] WARN password="hunter2"'),),
    }.items():
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        events: list[InputLogEventTypeDef] = [
            {"timestamp": now + moment, "message": text} for moment, text in entries
        ]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    lake = shown()
    assert lake.log_parts() == ("connect/debezium", "kafka")
    entries_shown = lake.read_log("connect/debezium")
    assert [one.level for one in entries_shown] == ["info", "warning", "error"]
    assert "hunter2" not in entries_shown[1].text
    assert [one.text[-3:] for one in Console(lake).log("connect/debezium", "error", "")] == ["end"]
    with pytest.raises(AwsError, match="DescribeLogStreams"):
        lake.read_log("nothing")


@pytest.mark.usefixtures("deployed")
def test_only_the_lakes_alarms_that_ring_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudwatch = boto3.client("cloudwatch", REGION)
    assert shown().open_alerts() == (), "there is no such stack yet"
    own = [f"{NAMES.resource}-rows-differ", f"{NAMES.resource}-table-old-users"]
    monkeypatch.setattr(AwsLake, "_alarm_names", lambda _: own)
    # The lake of another environment.
    for name in (*own, f"{NAMES.resource}-staging-rows-differ"):
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            AlarmDescription=f"{name} rings.",
            MetricName="m",
            Namespace="n",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            Statistic="Sum",
            ComparisonOperator="GreaterThanThreshold",
        )
        state: Literal["OK", "ALARM"] = "OK" if "old" in name else "ALARM"
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="test")
    (ringing,) = shown().open_alerts()
    assert (ringing.rule, ringing.subject) == ("alarm", "rows-differ")
    assert ringing.text.endswith("rings.")
    assert shown().has_alarms


@pytest.mark.usefixtures("deployed")
def test_a_deployed_lake_has_no_buttons() -> None:
    assert Console(shown()).actions is None
