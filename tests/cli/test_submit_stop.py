"""Stopping a job on the deployed lake also ends its application and its driver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import boto3
import pytest
from botocore.stub import Stubber

from tests.aws.test_spark_submit import ADDRESSES, JOBS
from tests.cli.deployed import LAKE, REGION, ROLE, SERVERLESS, deploy, make_stack, moto_aws
from tributary.aws.session import AwsSession, aws_session
from tributary.aws.spark_submit import Command, Job
from tributary.cli import main
from tributary.cli.commands import submit as submit_command
from tributary.contract.aws_names import Output
from tributary.contract.lake import parse_lake
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import JobRun, failure

CLUSTER, STEP, APPLICATION = "j-1", "s-1", "application_1_0001"


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(submit_command, "_pause", lambda: None)
    with moto_aws(monkeypatch):
        yield


@pytest.fixture
def emr(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """EMR as botocore's model describes it. Moto cannot cancel a step and knows nothing about YARN."""
    outputs = {Output.EMR_CLUSTER: CLUSTER, Output.RUNTIME_ROLE: ROLE}
    make_stack("processing", outputs)
    client = boto3.client("emr", REGION)
    monkeypatch.setattr(AwsSession, "emr", client)
    monkeypatch.setattr(AwsSession, "emr_once", client)
    with Stubber(client) as stub:
        cluster = {"Status": {"State": "RUNNING"}, "LogUri": "s3n://shop-logs/emr/"}
        stub.add_response("describe_cluster", {"Cluster": cluster}, {"ClusterId": CLUSTER})
        yield stub


def step(state: str, **more: Any) -> dict[str, Any]:
    timeline = {"CreationDateTime": datetime(2026, 11, 20, 10, tzinfo=UTC)}
    status = {"State": state, "Timeline": timeline}
    return {"Id": STEP, "Name": "tributary-shop-follow", "Status": status, **more}


def active(stub: Stubber, *steps: Mapping[str, Any]) -> None:
    asked = {"ClusterId": CLUSTER, "StepStates": ("PENDING", "RUNNING", "CANCEL_PENDING")}
    stub.add_response("list_steps", {"Steps": list(steps)}, asked)


def described(stub: Stubber, found: Mapping[str, Any]) -> None:
    stub.add_response("describe_step", {"Step": found}, {"ClusterId": CLUSTER, "StepId": STEP})


def test_a_running_step_ends_with_its_application_of_yarn(emr: Stubber) -> None:
    active(emr, step("RUNNING"))
    described(emr, step("RUNNING", AdditionalInfo={"ResourceManagerApplicationIds": [APPLICATION]}))
    arguments = ["yarn", "application", "-kill", APPLICATION]
    killing = {
        "Name": "tributary-shop-stop",
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments},
    }
    sent = {"JobFlowId": CLUSTER, "Steps": [killing], "ExecutionRoleArn": ROLE}
    emr.add_response("add_job_flow_steps", {"StepIds": ["s-2"]}, sent)
    assert main.run(["submit", "stop"]) == 0
    emr.assert_no_pending_responses()


def test_every_step_has_the_runtime_role(emr: Stubber) -> None:
    """A cluster with runtime roles refuses a step without one. Moto takes it."""
    described(emr, step("RUNNING", AdditionalInfo={"ResourceManagerApplicationIds": [APPLICATION]}))
    lake = parse_lake(LAKE)
    with aws_session(lake, Path("lake.toml")) as session:
        place = DeployedLake(lake, session).job_place
        place.require_usable()
        running = JobRun(
            id=STEP,
            name="tributary-shop-follow",
            kind="step",
            state="running",
            aws_state="RUNNING",
            created=datetime(2026, 11, 20, 10, tzinfo=UTC),
            ended=None,
            reason=None,
            logs=(),
        )
        others = {job.command: job for job in JOBS}
        jobs = [*JOBS, *(Job(command) for command in get_args(Command) if command not in others)]
        calls = [place.stop_call(running), *(place.start_call(job, ADDRESSES) for job in jobs)]
    assert {(call.operation, call.parameters.get("ExecutionRoleArn")) for call in calls} == {
        ("AddJobFlowSteps", ROLE)
    }


def test_a_step_without_a_known_application_is_not_just_canceled(
    emr: Stubber, capsys: pytest.CaptureFixture[str]
) -> None:
    active(emr, step("RUNNING"))
    described(emr, step("RUNNING"))
    assert main.run(["submit", "stop"]) == 1
    assert "which YARN application" in capsys.readouterr().err
    emr.assert_no_pending_responses()


def test_a_step_that_waits_is_canceled(emr: Stubber) -> None:
    active(emr, step("PENDING"))
    asked = {"ClusterId": CLUSTER, "StepIds": [STEP], "StepCancellationOption": "SEND_INTERRUPT"}
    emr.add_response("cancel_steps", {}, asked)
    assert main.run(["submit", "stop"]) == 0
    emr.assert_no_pending_responses()


def test_a_job_that_stops_another_one_is_not_stopped_itself(
    emr: Stubber, capsys: pytest.CaptureFixture[str]
) -> None:
    active(emr, step("RUNNING") | {"Name": "tributary-shop-stop"})
    assert main.run(["submit", "stop"]) == 0
    assert f"No job runs on EMR cluster {CLUSTER}" in capsys.readouterr().out


def test_a_dry_run_stops_nothing(emr: Stubber, capsys: pytest.CaptureFixture[str]) -> None:
    active(emr, step("PENDING"))
    assert main.run(["submit", "stop", "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["operation"] == "CancelSteps"


def test_waiting_for_a_stop_ends_with_the_job_that_was_stopped(
    emr: Stubber, capsys: pytest.CaptureFixture[str]
) -> None:
    active(emr, step("PENDING"))
    emr.add_response("cancel_steps", {})
    described(emr, step("CANCEL_PENDING"))
    described(emr, step("CANCELLED"))
    assert main.run(["submit", "stop", "--wait", "--json"]) == 0
    (stopped,) = json.loads(capsys.readouterr().out)
    assert (stopped["id"], stopped["state"]) == (STEP, "CANCELLED")
    emr.assert_no_pending_responses()


def test_a_failed_step_is_reported_with_emr_s_excerpt_of_its_log(emr: Stubber) -> None:
    details = {"Reason": "Unknown Error.", "Message": "Exception in thread main", "LogFile": "s3://logs/x.gz"}
    failed = step("FAILED", AdditionalInfo={"ResourceManagerApplicationIds": [APPLICATION]})
    failed["Status"]["FailureDetails"] = details
    described(emr, failed)
    lake = parse_lake(LAKE)
    with aws_session(lake, Path("lake.toml")) as session:
        place = DeployedLake(lake, session).job_place
        place.require_usable()
        told = str(failure(place.name, place.read(STEP)))
    assert "Unknown Error.; Exception in thread main" in told
    assert "s3://logs/x.gz" in told
    assert f"s3://shop-logs/emr/{CLUSTER}/containers/{APPLICATION}/" in told


def test_a_job_run_of_emr_serverless_gets_time_for_its_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake.toml").write_text(SERVERLESS)
    application = deploy("emr-serverless").place_id
    client = boto3.client("emr-serverless", REGION)
    monkeypatch.setattr(AwsSession, "emr_serverless", client)
    at = datetime(2026, 11, 20, 10, tzinfo=UTC)
    run = {
        "applicationId": application,
        "id": "r-1",
        "name": "tributary-shop-follow",
        "arn": f"arn:aws:emr-serverless:{REGION}:123456789012:/applications/a/jobruns/r-1",
        "createdBy": "arn:aws:iam::123456789012:user/somebody",
        "createdAt": at,
        "updatedAt": at,
        "executionRole": ROLE,
        "state": "RUNNING",
        "stateDetails": "Runs",
        "releaseLabel": "emr-7.13.0",
    }
    with Stubber(client) as stub:
        stub.add_response("get_application", {"application": _application(application, at)})
        stub.add_response("list_job_runs", {"jobRuns": [run]})
        asked = {"applicationId": application, "jobRunId": "r-1", "shutdownGracePeriodInSeconds": 120}
        stub.add_response("cancel_job_run", {"applicationId": application, "jobRunId": "r-1"}, asked)
        assert main.run(["submit", "stop"]) == 0
        stub.assert_no_pending_responses()


def _application(application: str, at: datetime) -> dict[str, Any]:
    return {
        "applicationId": application,
        "arn": f"arn:aws:emr-serverless:{REGION}:123456789012:/applications/{application}",
        "releaseLabel": "emr-7.13.0",
        "type": "Spark",
        "state": "STARTED",
        "createdAt": at,
        "updatedAt": at,
    }
