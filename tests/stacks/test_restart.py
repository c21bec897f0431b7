"""A follow job that died is started again, one that a person stopped is not, and the third death rings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from moto.emr.models import emr_backends

from stacks.functions.restart.main import (
    METRIC,
    Decision,
    EmrSteps,
    Request,
    Run,
    ServerlessRuns,
    serve,
)
from stacks.synthesized import rendered, resources_of
from tests.stacks.conftest import Synthesized
from tributary.contract.aws_names import METRICS_NAMESPACE

START = datetime(2026, 11, 27, 12, tzinfo=UTC)
FOLLOW, STOP = "tributary-shop-follow", "tributary-shop-stop"
ROLE = "arn:aws:iam::123456789012:role/runtime"
REQUEST = Request("shop", METRICS_NAMESPACE, "tributary-shop", ROLE, 3, "j-1", "")


@dataclass
class Cluster:
    """A cluster whose clock a test sets. `sleep` lets a person act in the meantime."""

    now: datetime = START
    runs: dict[str, Run] = field(default_factory=dict)
    started: list[datetime] = field(default_factory=list)
    reported: list[Mapping[str, Any]] = field(default_factory=list)
    usable: bool = True

    def add(self, name: str) -> str:
        run = Run(f"s-{len(self.runs)}", name, "active", self.now, None)
        self.runs[run.id] = run
        return run.id

    def end(self, run: str, state: Any) -> None:
        self.runs[run] = replace(self.runs[run], state=state, ended=self.now)

    def active(self) -> list[Run]:
        return [run for run in self.runs.values() if run.state == "active" and run.name == FOLLOW]

    def read(self, run: str) -> Run:
        return self.runs[run]

    def others(self) -> Iterable[Run]:
        return list(self.runs.values())

    def start_again(self, run: str) -> str:
        self.started.append(self.now)
        return self.add(self.runs[run].name)

    def is_usable(self) -> bool:
        return self.usable

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def died(self, run: str) -> Decision:
        self.end(run, "failed")
        return serve(replace(REQUEST, run=run), self, self.reported.append, self.sleep)

    def stopped(self, run: str) -> Decision:
        """Stop it as `tributary submit stop` does: a step kills it, so that it has failed."""
        stop = self.add(STOP)
        self.now += timedelta(seconds=20)
        self.end(stop, "other")
        return self.died(run)

    def deaths_reported(self) -> list[int]:
        return [line[METRIC] for line in self.reported if METRIC in line]


EVENTS = st.lists(
    st.tuples(st.integers(0, 3000), st.sampled_from(["death", "stop", "start", "cancel"])), max_size=25
)


@given(EVENTS)
def test_in_any_history_deaths_are_followed_by_starts_and_stops_are_not(
    events: list[tuple[int, str]],
) -> None:
    cluster = Cluster()
    cluster.add(FOLLOW)
    for seconds, event in events:
        cluster.now += timedelta(seconds=seconds)
        active = cluster.active()
        if event == "start" and not active:
            cluster.add(FOLLOW)
        elif event == "cancel" and active:
            cluster.end(active[0].id, "other")
        elif event == "stop" and active:
            cluster.stopped(active[0].id)
            assert not cluster.active()
        elif event == "death" and active:
            hour_ago = cluster.now - timedelta(hours=1)
            starts = [start for start in cluster.started if start > hour_ago]
            cluster.died(active[0].id)
            # Each start follows a death by a pause. So with few starts there were few deaths.
            assert cluster.active() or len(starts) >= REQUEST.restarts or cluster.deaths_reported()[-1] > 3
        assert len(cluster.active()) <= 1
    for last in cluster.started:
        within = [start for start in cluster.started if last - timedelta(hours=1) < start <= last]
        # A pause of five minutes lies between a death and its start.
        assert len(within) <= REQUEST.restarts + 1


def test_the_fourth_death_within_an_hour_is_left_to_a_person() -> None:
    cluster = Cluster()
    cluster.add(FOLLOW)
    decisions = []
    for _ in range(4):
        cluster.now += timedelta(minutes=5)
        decisions.append(cluster.died(cluster.active()[0].id))
    assert [decision.starts for decision in decisions] == [True, True, True, False]
    assert cluster.deaths_reported() == [1, 2, 3, 4]
    assert not cluster.active()


def test_a_death_a_day_is_always_the_first() -> None:
    cluster = Cluster()
    cluster.add(FOLLOW)
    for _ in range(10):
        cluster.now += timedelta(days=1)
        assert cluster.died(cluster.active()[0].id).starts
    assert set(cluster.deaths_reported()) == {1}


def test_a_person_who_stops_or_starts_a_job_during_the_pause_has_the_last_word() -> None:
    cluster = Cluster()
    first = cluster.add(FOLLOW)
    cluster.died(first)
    second = cluster.active()[0].id

    def submit_rebuild(_: float) -> None:
        cluster.add("tributary-shop-rebuild")

    cluster.end(second, "failed")
    decision = serve(replace(REQUEST, run=second), cluster, cluster.reported.append, submit_rebuild)
    assert not decision.starts
    assert "tributary-shop-rebuild is active" in decision.why


def test_another_lake_s_jobs_and_other_jobs_of_the_lake_are_left_alone() -> None:
    cluster = Cluster()
    cluster.add("tributary-shop-eu-follow")
    rebuild = cluster.add("tributary-shop-rebuild")
    assert not cluster.died(rebuild).starts
    assert cluster.deaths_reported() == []


def test_nothing_is_started_on_a_cluster_that_has_ended() -> None:
    cluster = Cluster(usable=False)
    decision = cluster.died(cluster.add(FOLLOW))
    assert (decision.starts, cluster.started) == (False, [])


def test_a_step_is_started_again_with_its_own_arguments_and_the_runtime_role() -> None:
    with mock_aws():
        emr = boto3.client("emr", "eu-west-1")
        cluster = emr.run_job_flow(
            Name="shop",
            Instances={"MasterInstanceType": "m7g.xlarge", "KeepJobFlowAliveWhenNoSteps": True},
        )["JobFlowId"]
        step: Any = {
            "Name": FOLLOW,
            "ActionOnFailure": "CONTINUE",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["spark-submit", "'a b'"]},
        }
        (died,) = emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step], ExecutionRoleArn=ROLE)["StepIds"]
        (kept,) = emr_backends["123456789012"]["eu-west-1"].clusters[cluster].steps
        kept.state = "FAILED"
        vars(kept)["end_date_time"] = kept.creation_date_time + timedelta(hours=1)
        sent: list[Mapping[str, Any]] = []
        emr.meta.events.register(
            "provide-client-params.emr.AddJobFlowSteps", lambda params, **_: sent.append(params)
        )
        jobs = EmrSteps(emr, cluster, ROLE)
        decision = serve(replace(REQUEST, place=cluster, run=died), jobs, lambda _: None, lambda _: None)
        assert decision.starts
        assert sent == [{"JobFlowId": cluster, "Steps": [step], "ExecutionRoleArn": ROLE}]
        again = serve(replace(REQUEST, place=cluster, run=died), jobs, lambda _: None, lambda _: None)
        assert "is active" in again.why


def test_a_job_run_is_started_again_once_however_often_its_death_is_reported() -> None:
    emr = boto3.client(
        "emr-serverless", "eu-west-1", aws_access_key_id="testing", aws_secret_access_key="testing"
    )
    stub = Stubber(emr)
    driver = {"sparkSubmit": {"entryPoint": "s3://assets/main.py", "entryPointArguments": ["ingest"]}}
    job_run = {
        "applicationId": "00abc",
        "jobRunId": "00run",
        "name": FOLLOW,
        "arn": "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/00abc/jobruns/00run",
        "createdBy": "arn:aws:iam::123456789012:user/somebody",
        "createdAt": START - timedelta(days=10),
        "updatedAt": START,
        "executionRole": ROLE,
        "state": "FAILED",
        "stateDetails": "died",
        "releaseLabel": "emr-7.13.0",
        "jobDriver": driver,
        "mode": "STREAMING",
        "executionTimeoutMinutes": 0,
    }
    application = {
        "applicationId": "00abc",
        "arn": "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/00abc",
        "releaseLabel": "emr-7.13.0",
        "type": "Spark",
        "state": "STARTED",
        "createdAt": START,
        "updatedAt": START,
    }
    asked = {"applicationId": "00abc", "jobRunId": "00run"}
    stub.add_response("get_job_run", {"jobRun": job_run}, asked)
    listed = {"applicationId": "00abc"}
    stub.add_response("list_job_runs", {"jobRuns": []}, {**listed, "createdAtAfter": ANY})
    stub.add_response("list_job_runs", {"jobRuns": []}, {**listed, "states": ANY})
    stub.add_response("get_application", {"application": application}, listed)
    stub.add_response("get_job_run", {"jobRun": job_run}, asked)
    stub.add_response(
        "start_job_run",
        {
            "applicationId": "00abc",
            "jobRunId": "00new",
            "arn": "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/00abc/jobruns/00new",
        },
        {
            "applicationId": "00abc",
            "clientToken": "restart-00run",
            "executionRoleArn": ROLE,
            "name": FOLLOW,
            "mode": "STREAMING",
            "executionTimeoutMinutes": 0,
            "jobDriver": driver,
        },
    )
    with stub:
        reported: list[Mapping[str, Any]] = []
        request = replace(REQUEST, place="00abc", run="00run")
        serve(request, ServerlessRuns(emr, "00abc", ROLE), reported.append, lambda _: None)
        stub.assert_no_pending_responses()
    assert reported[-1]["started"] == "00new"


def test_each_death_is_a_metric_of_the_lake_and_the_third_one_rings(synthesized: Synthesized) -> None:
    cluster = Cluster()
    cluster.died(cluster.add(FOLLOW))
    (line,) = (line for line in cluster.reported if "_aws" in line)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert line["Lake"] == "shop"
    (alarm,) = (
        resource["Properties"]
        for _, _, resource in resources_of(synthesized("small").templates)
        if resource["Type"] == "AWS::CloudWatch::Alarm"
        and resource["Properties"]["AlarmName"] == "tributary-shop-follow-died"
    )
    assert (alarm["Namespace"], alarm["MetricName"]) == (directive["Namespace"], METRIC)
    assert [one["Name"] for one in alarm["Dimensions"]] == directive["Dimensions"][0]
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (2, "GreaterThanThreshold")


@pytest.mark.parametrize(
    ("settings", "source", "detail", "run"),
    [
        ("small", "aws.emr", {"name": [FOLLOW], "state": ["FAILED"]}, "$.detail.stepId"),
        ("emr-serverless", "aws.emr-serverless", {"state": ["FAILED"]}, "$.detail.jobRunId"),
    ],
)
def test_a_rule_calls_the_function_for_failed_jobs_but_not_for_canceled_ones(
    synthesized: Synthesized, settings: str, source: str, detail: Mapping[str, Any], run: str
) -> None:
    (rule,) = (
        resource["Properties"]
        for stack, _, resource in resources_of(synthesized(settings).templates)
        if stack == "Processing" and resource["Type"] == "AWS::Events::Rule"
    )
    assert rule["EventPattern"]["source"] == [source]
    assert rule["EventPattern"]["detail"].items() >= detail.items()
    (target,) = rule["Targets"]
    assert run in target["InputTransformer"]["InputPathsMap"].values()
    template = rendered(target["InputTransformer"]["InputTemplate"])
    assert set(re.findall(r'"(\w+)":', template)) == set(Request.__dataclass_fields__)


def test_without_restarts_there_is_no_function_and_no_alarm(synthesized: Synthesized) -> None:
    text = json.dumps(synthesized("everything-else").templates)
    assert "follow-died" not in text
    assert "/restart" not in text
