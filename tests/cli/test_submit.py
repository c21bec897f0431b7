"""A job is submitted to the deployed lake, or refused with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.validate import validate_parameters
from moto.emr.models import emr_backends
from moto.emrserverless.models import emrserverless_backends

from tests.cli.deployed import (
    ACCOUNT,
    LAKE,
    NAMES,
    REGION,
    RELEASE,
    ROLE,
    SERVERLESS,
    Deployed,
    deploy,
    moto_aws,
    preflight,
)
from tributary.aws.session import AwsSession
from tributary.cli import main
from tributary.cli.commands import submit as submit_command
from tributary.contract.aws_names import Output
from tributary.contract.preflight import preflight_file


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    with moto_aws(monkeypatch):
        yield


@pytest.fixture
def on_emr() -> Deployed:
    return deploy()


@pytest.fixture
def on_serverless(tmp_path: Path) -> Deployed:
    (tmp_path / "lake.toml").write_text(SERVERLESS)
    deployed = deploy("emr-serverless")
    # Moto cannot list the job runs of an application that has none.
    deployed.emr_serverless.start_job_run(
        applicationId=deployed.place_id,
        executionRoleArn=ROLE,
        clientToken="somebody else's",
        name="somebody-else-s",
        jobDriver={"sparkSubmit": {"entryPoint": "s3://elsewhere/main.py"}},
    )
    return deployed


def steps_of(deployed: Deployed) -> Sequence[Any]:
    return deployed.emr.list_steps(ClusterId=deployed.place_id)["Steps"]


def runs_of(deployed: Deployed) -> list[Any]:
    runs = deployed.emr_serverless.list_job_runs(applicationId=deployed.place_id)["jobRuns"]
    return [run for run in runs if run.get("name") != "somebody-else-s"]


def let_step_be(deployed: Deployed, state: str, reason: str | None = None) -> None:
    (step,) = emr_backends[ACCOUNT][REGION].clusters[deployed.place_id].steps
    step.state = state
    vars(step)["last_state_change_reason"] = reason


def let_runs_be(deployed: Deployed, *states: str) -> None:
    own = emrserverless_backends[ACCOUNT][REGION].job_runs[deployed.place_id][1:]
    for run, state in zip(own, states, strict=True):
        run.state = state


def states_in_turn(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], None]) -> None:
    """Let each change happen between two polls."""
    left = list(changes)
    monkeypatch.setattr(submit_command, "_pause", lambda: left.pop(0)())


def test_a_follow_job_is_a_step_of_the_cluster(on_emr: Deployed) -> None:
    assert main.run(["submit", "follow"]) == 0
    (step,) = steps_of(on_emr)
    assert (step["Name"], step["ActionOnFailure"]) == ("tributary-shop-follow", "CONTINUE")
    assert step["Config"]["Jar"] == "command-runner.jar"
    arguments = step["Config"]["Args"]
    assert arguments[0] == "spark-submit"
    assert arguments[arguments.index("s3://assets/main.py") + 1] == "ingest"
    assert "--follow" in arguments


def test_a_follow_job_is_a_streaming_run_on_emr_serverless(on_serverless: Deployed) -> None:
    assert main.run(["submit", "follow"]) == 0
    (run,) = runs_of(on_serverless)
    assert (run["name"], run["executionRole"]) == ("tributary-shop-follow", ROLE)
    (sent,) = emrserverless_backends[ACCOUNT][REGION].job_runs[on_serverless.place_id][1:]
    assert sent.job_driver is not None
    assert "--follow" in sent.job_driver["sparkSubmit"]["entryPointArguments"]


@pytest.mark.parametrize("found", [None, preflight("login to Kafka").to_json(), "of another version"])
def test_a_follow_job_needs_a_passed_preflight_on_the_release_or_the_option(
    on_emr: Deployed, found: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket, key = NAMES.bucket("quarantine", ACCOUNT, REGION), preflight_file(RELEASE)
    on_emr.s3.delete_object(Bucket=bucket, Key=key)
    if found is not None:
        on_emr.put("quarantine", key, found)

    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert f"The preflight has not passed on {RELEASE}" in told
    assert "tributary submit preflight --wait" in told
    assert ("found login to Kafka" in told) == (found is not None and found.startswith("{"))
    assert not steps_of(on_emr)

    assert main.run(["submit", "follow", "--without-preflight"]) == 0
    assert [step["Name"] for step in steps_of(on_emr)] == ["tributary-shop-follow"]


def test_a_follow_job_without_java_says_so(on_emr: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    on_emr.put("quarantine", preflight_file(RELEASE), preflight("Java, tables").to_json())
    assert main.run(["submit", "follow"]) == 0
    assert "plain PySpark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failed", "state", "status", "told"),
    [
        (None, "COMPLETED", 0, "with its Java"),
        ("Java, tables", "COMPLETED", 0, "in plain PySpark"),
        ("login to Kafka", "FAILED", 1, "does not run the Spark app"),
    ],
)
def test_a_preflight_is_a_step_whose_checks_are_a_table(
    on_emr: Deployed,
    failed: str | None,
    state: str,
    status: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def end() -> None:
        on_emr.put("quarantine", preflight_file(RELEASE), preflight(failed).to_json())
        let_step_be(on_emr, state)

    states_in_turn(monkeypatch, end)
    assert main.run(["submit", "preflight", "--wait"]) == status
    printed = capsys.readouterr().out
    assert told in printed
    assert "login to Kafka" in printed
    (step,) = steps_of(on_emr)
    arguments = step["Config"]["Args"]
    assert arguments[arguments.index("s3://assets/main.py") + 1] == "preflight"
    assert arguments[arguments.index("--release") + 1] == RELEASE


def test_a_dry_run_prints_a_valid_request_and_sends_none(
    on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["submit", "ingest", "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["service"], printed["operation"]) == ("emr", "AddJobFlowSteps")
    assert printed["parameters"]["JobFlowId"] == on_emr.place_id
    assert printed["parameters"]["ExecutionRoleArn"] == ROLE
    _validate(printed)
    assert not steps_of(on_emr)


@pytest.mark.parametrize(
    ("operation", "mode", "minutes"), [("follow", "STREAMING", 0), ("ingest", "BATCH", 10080)]
)
def test_a_dry_run_for_emr_serverless_is_input_for_aws_s_own_command(
    operation: str,
    mode: str,
    minutes: int,
    on_serverless: Deployed,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["submit", operation, "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["service"], printed["operation"]) == ("emr-serverless", "StartJobRun")
    # The client that sends the request fills in the token.
    _validate({**printed, "parameters": {**printed["parameters"], "clientToken": "token"}})
    assert printed["parameters"]["mode"] == mode
    assert printed["parameters"]["executionTimeoutMinutes"] == minutes
    assert not runs_of(on_serverless)


def _validate(printed: dict[str, Any]) -> None:
    model = botocore.session.get_session().get_service_model(printed["service"])
    shape = model.operation_model(printed["operation"]).input_shape
    assert shape is not None
    validate_parameters(printed["parameters"], shape)
    assert printed["parameters"].keys() <= shape.members.keys()


@pytest.mark.parametrize("entry", ['retention = "90d"', "erase = true"])
def test_maintenance_needs_a_lake_file_that_lets_the_job_change_bronze(
    entry: str, on_emr: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["submit", "maintain"]) == 1
    told = capsys.readouterr().err
    assert "[bronze].erase and [bronze].retention" in told
    assert not steps_of(on_emr)
    for wrong in (["sales"], ["--from", "kafka"]):
        assert main.run(["submit", "maintain", *wrong]) == 2

    (tmp_path / "lake.toml").write_text(f"{LAKE}[bronze]\n{entry}\n")
    assert main.run(["submit", "maintain"]) == 0
    (step,) = steps_of(on_emr)
    assert step["Name"] == "tributary-shop-maintain"


@pytest.mark.parametrize("second", ["follow", "ingest", "compact"])
def test_a_second_job_is_refused_while_one_runs_and_the_running_step_is_named(
    second: str, on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["submit", "follow"]) == 0
    (step,) = steps_of(on_emr)
    capsys.readouterr()
    assert main.run(["submit", second]) == 1
    told = capsys.readouterr().err
    assert "tributary-shop-follow has not ended" in told
    assert step["Id"] in told
    assert "tributary submit stop" in told
    assert len(steps_of(on_emr)) == 1


@pytest.mark.parametrize("state", ["SCHEDULED", "RUNNING", "CANCELLING"])
def test_a_second_job_run_is_refused_while_one_runs(
    state: str, on_serverless: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["submit", "follow"]) == 0
    let_runs_be(on_serverless, state)
    (run,) = runs_of(on_serverless)
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert run["id"] in told
    assert "tributary submit stop" in told
    assert len(runs_of(on_serverless)) == 1


OTHER_SINK = f"""[aws.connect.sink]
plugin = "own.zip"
sha256 = "{"0" * 64}"
config = {{"connector.class" = "org.example.S3Sink"}}
"""
DERIVED = (
    LAKE
    + """
[derived.totals]
key = ["country"]
sql = "SELECT country, count(*) AS n FROM orders GROUP BY country"
"""
)


def test_derived_tables_are_derived_beside_a_follow_job_and_by_one_job_at_a_time(
    on_emr: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(DERIVED)
    assert main.run(["submit", "follow"]) == 0
    assert main.run(["submit", "derive", "totals", "--follow"]) == 0
    derive, _ = steps_of(on_emr)
    arguments = derive["Config"]["Args"]
    own = arguments[arguments.index("s3://assets/main.py") + 1 :]
    assert (derive["Name"], own[0]) == ("tributary-shop-derive", "derive")
    assert own[-3:] == ["--follow", "--derived", "totals"]
    assert "--glue-database" in own
    assert main.run(["submit", "derive"]) == 1
    assert "tributary-shop-derive has not ended" in " ".join(capsys.readouterr().err.split())
    assert main.run(["submit", "ingest"]) == 1


def test_an_unknown_derived_table_is_reported_with_those_that_there_are(
    on_emr: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(DERIVED)
    assert main.run(["submit", "derive", "total"]) == 1
    assert "expected one of totals" in capsys.readouterr().err
    assert not steps_of(on_emr)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED"])
def test_an_ended_job_does_not_block_another_one(state: str, on_emr: Deployed) -> None:
    assert main.run(["submit", "follow"]) == 0
    let_step_be(on_emr, state)
    assert main.run(["submit", "follow"]) == 0
    assert len(steps_of(on_emr)) == 2


def test_a_step_of_another_lake_does_not_block_a_job(on_emr: Deployed) -> None:
    other = {"Name": "somebody else's", "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["true"]}}
    on_emr.emr.add_job_flow_steps(JobFlowId=on_emr.place_id, Steps=[other])  # type: ignore[list-item]
    assert main.run(["submit", "follow"]) == 0


def test_a_dry_run_says_that_the_job_would_be_refused(
    on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["submit", "follow"]) == 0
    capsys.readouterr()
    assert main.run(["submit", "follow", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["operation"] == "AddJobFlowSteps"
    assert "It would be refused" in told.err
    assert len(steps_of(on_emr)) == 1


def test_a_rebuild_takes_the_tables_that_match_a_name_or_pattern(on_emr: Deployed) -> None:
    on_emr.put_silver_table("orders")
    on_emr.put_silver_table("lines")
    on_emr.put("quarantine", "shop/public/odd/_outcome.json")
    assert main.run(["submit", "rebuild", "orders", "public.o*", "--since-snapshot"]) == 0
    (step,) = steps_of(on_emr)
    arguments = step["Config"]["Args"]
    named = [arguments[place + 1] for place, text in enumerate(arguments) if text == "--tables"]
    assert named == ["shop.public.odd", "shop.public.orders"]
    assert arguments[arguments.index("s3://assets/main.py") + 1] == "rebuild"
    assert "--since-snapshot" in arguments


def test_an_unknown_table_is_reported_with_a_suggestion(
    on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    on_emr.put_silver_table("orders")
    assert main.run(["submit", "rebuild", "ordres"]) == 1
    assert "Did you mean shop.public.orders?" in capsys.readouterr().err
    assert not steps_of(on_emr)


def test_waiting_ends_with_the_job(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states_in_turn(monkeypatch, lambda: None, lambda: let_step_be(on_emr, "COMPLETED"))
    assert main.run(["submit", "ingest", "--wait"]) == 0
    told = capsys.readouterr().err
    assert told.count("RUNNING") == 1
    assert "COMPLETED" in told


def test_waiting_for_a_follow_job_ends_when_it_runs(
    on_serverless: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = submit_command._start

    def start_as_scheduled(*arguments: Any) -> Any:
        run = read(*arguments)
        let_runs_be(on_serverless, "SCHEDULED")
        return run

    monkeypatch.setattr(submit_command, "_start", start_as_scheduled)
    states_in_turn(monkeypatch, lambda: let_runs_be(on_serverless, "RUNNING"))
    assert main.run(["submit", "follow", "--wait"]) == 0
    told = capsys.readouterr().err
    assert "SCHEDULED" in told
    assert "RUNNING" in told


def test_a_job_that_fails_ends_the_waiting_with_status_1_the_reason_and_its_log(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states_in_turn(monkeypatch, lambda: let_step_be(on_emr, "FAILED", "Exit status 137"))
    assert main.run(["submit", "ingest", "--wait"]) == 1
    (step,) = steps_of(on_emr)
    told = capsys.readouterr().err.splitlines()[-1]
    assert "tributary-shop-ingest is FAILED" in told
    assert "Exit status 137" in told
    assert f"s3://shop-logs/emr/{on_emr.place_id}/steps/{step['Id']}/" in told


def test_ctrl_c_while_waiting_says_that_the_job_keeps_running(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    states_in_turn(monkeypatch, interrupt)
    assert main.run(["submit", "ingest", "--wait"]) == 130
    assert "tributary-shop-ingest keeps running" in capsys.readouterr().err
    assert steps_of(on_emr)[0]["Status"]["State"] == "RUNNING"


def test_a_terminated_cluster_is_reported_with_time_and_reason(
    on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    on_emr.emr.terminate_job_flows(JobFlowIds=[on_emr.place_id])
    cluster = emr_backends[ACCOUNT][REGION].clusters[on_emr.place_id]
    vars(cluster)["last_state_change_reason"] = "Terminated by user request"
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert f"EMR cluster {on_emr.place_id}" in told
    assert f"TERMINATED since {cluster.end_datetime:%Y-%m-%d %H:%M} UTC: Terminated by user request" in told
    assert "cdk deploy" in told


def test_a_missing_application_is_reported(
    on_serverless: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    emrserverless_backends[ACCOUNT][REGION].applications[on_serverless.place_id].state = "TERMINATED"
    assert main.run(["submit", "follow"]) == 1
    assert "the application is terminated" in capsys.readouterr().err


def test_a_missing_stack_is_named_with_the_command_that_creates_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert (
        f"stack tributary-shop-processing, account {ACCOUNT}, region {REGION}: the stack does not exist"
        in told
    )
    assert "cdk deploy --all" in told


@pytest.mark.parametrize(
    ("output", "stack"),
    [
        (Output.RUNTIME_ROLE, NAMES.stack("processing")),
        (Output.EMR_CLUSTER, NAMES.stack("processing")),
        (Output.SPARK_APP, NAMES.stack("processing")),
        (Output.BOOTSTRAP_SERVERS, NAMES.stack("streaming")),
        (Output.SILVER, NAMES.stack("lake")),
    ],
)
def test_a_missing_output_is_reported_with_its_stack(
    output: str, stack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(without=(output,))
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert f"stack {stack}" in told
    assert f"no output {output}" in told
    assert "cdk deploy --all" in told


def test_bronze_of_another_sink_is_read_as_its_files(
    tmp_path: Path, on_emr: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(LAKE + OTHER_SINK)
    on_emr.put_silver_table("orders")
    assert main.run(["submit", "rebuild", "orders"]) == 1
    assert "entry [aws.connect.sink]" in capsys.readouterr().err
    assert main.run(["submit", "rebuild", "orders", "--from", "files:s3://shop-bronze/topics"]) == 0
    (step,) = steps_of(on_emr)
    arguments = step["Config"]["Args"]
    assert arguments[arguments.index("--from") + 1] == "files:s3://shop-bronze/topics"


def test_an_unanswered_request_is_reported_as_possibly_accepted(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client, asked = boto3.client("emr", REGION), []

    def never_answer(request: Any, **_: object) -> None:
        asked.append(request.url)
        raise ReadTimeoutError(endpoint_url=request.url)

    client.meta.events.register_first("before-send.emr.AddJobFlowSteps", never_answer)
    monkeypatch.setattr(AwsSession, "emr_once", client)
    assert main.run(["submit", "follow"]) == 1
    assert "may or may not have added the step" in capsys.readouterr().err
    assert asked
    assert not steps_of(on_emr)


def test_a_lake_file_without_aws_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lake.toml").write_text(LAKE.partition("[aws]")[0])
    assert main.run(["submit", "follow"]) == 1
    assert "a section [aws]" in capsys.readouterr().err


def test_another_account_than_the_lake_s_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(LAKE.replace(ACCOUNT, "999999999999"))
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert "entry [aws].account" in told
    assert f"of account {ACCOUNT}" in told
    assert "expected account 999999999999" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ["rebuild"],
        ["new-epoch"],
        ["follow", "orders"],
        ["ingest", "orders"],
        ["ingest", "--from", "x"],
        ["replay", "--since-snapshot"],
        ["x"],
    ],
)
def test_wrong_usage_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["submit", *arguments]) == 2
    assert "Error" in capsys.readouterr().err


def test_a_job_is_json_for_a_program(on_emr: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["submit", "compact", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (step,) = steps_of(on_emr)
    assert (told["id"], told["name"], told["state"]) == (step["Id"], "tributary-shop-compact", "RUNNING")


def test_the_command_starts_without_the_cdk_and_without_boto() -> None:
    heavy = ("aws_cdk", "boto3", "botocore")
    program = f"import sys, tributary.cli.main; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_no_command_on_aws_needs_the_cdk() -> None:
    modules = "tributary.operations.aws.deployed_lake, tributary.cli.aws.status_view"
    program = f"import sys, {modules}; print('aws_cdk' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(("lake", "operation"), [(LAKE, "AddJobFlowSteps"), (SERVERLESS, "StartJobRun")])
@pytest.mark.parametrize("is_logged_in", [True, False])
def test_a_dry_run_without_an_account_or_a_deployed_lake_has_placeholders(
    lake: str,
    operation: str,
    is_logged_in: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "lake.toml").write_text(lake)
    with monkeypatch.context() as environment:
        if not is_logged_in:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
                environment.delenv(name, raising=False)
            environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        assert main.run(["submit", "rebuild", "orders", "--dry-run"]) == 0
    told = capsys.readouterr()
    printed = json.loads(told.out)
    assert printed["operation"] == operation
    assert "<tributary-shop-processing RuntimeRoleArn>" in told.out
    assert "<tributary-shop-streaming BootstrapServers>" in told.out
    assert "orders" in told.out
    assert "Each <…> stands for an output of a stack" in told.err


@pytest.mark.parametrize(
    ("entries", "arguments", "told"),
    [
        ("", ["derive"], "the lake has no derived tables"),
        ("", ["maintain"], "[bronze].erase and [bronze].retention"),
        ("", ["maintain"], "cdk deploy --all"),
        (OTHER_SINK, ["rebuild", "orders"], "entry [aws.connect.sink]"),
        (OTHER_SINK, ["ingest", "--from", "bronze"], "entry [aws.connect.sink]"),
    ],
)
def test_a_dry_run_without_an_account_refuses_what_the_lake_file_rules_out(
    entries: str, arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(LAKE + entries)
    assert main.run(["submit", *arguments, "--dry-run"]) == 1
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("lake", "operation", "found"),
    [
        (LAKE, "AddJobFlowSteps", "<YARN application of the running job>"),
        (SERVERLESS, "CancelJobRun", "<tributary-shop-processing EmrServerlessApplicationId>"),
    ],
)
def test_a_dry_run_shows_how_a_job_would_be_stopped_without_an_account(
    lake: str, operation: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(lake)
    assert main.run(["submit", "stop", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["operation"] == operation
    assert found in told.out
    if operation == "AddJobFlowSteps":
        assert "<tributary-shop-processing RuntimeRoleArn>" in told.out
    assert "Each running job gets such a request" in told.err


def test_nothing_is_stopped_without_an_account() -> None:
    assert main.run(["submit", "stop"]) == 1


def test_a_job_of_an_environment_is_one_of_its_own_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.staging.toml").write_text('[aws]\nprofile = "production"\n')
    assert main.run(["submit", "follow", "--env", "staging", "--dry-run"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["parameters"]["Steps"][0]["Name"] == "tributary-shop-staging-follow"
    assert printed["parameters"]["JobFlowId"] == "<tributary-shop-staging-processing EmrClusterId>"
