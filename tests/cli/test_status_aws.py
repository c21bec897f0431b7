"""The status of a deployed lake shows its connectors, jobs and tables, and fails if one of them has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto.emr.models import emr_backends

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from tests.cli.deployed import ACCOUNT, LAKE, NAMES, REGION, Deployed, deploy, make_stack, moto_aws
from tributary.aws.session import AwsSession
from tributary.cli import main
from tributary.contract.aws_names import METRICS_NAMESPACE, Output
from tributary.contract.lake import parse_lake
from tributary.contract.orphan import DecidedOrphan, Decision, orphan_name
from tributary.contract.orphan import to_json as orphan_json
from tributary.contract.remedies import RebuildTable
from tributary.contract.source_look import look_name
from tributary.contract.table_name import TableName
from tributary.operations.verify.record import (
    CheckedPart,
    FoundRow,
    Verification,
    to_json,
    verification_name,
)

DEBEZIUM, SINK = "tributary-shop-shop-debezium", "tributary-shop-bronze-iceberg"
LAKE_NAMES = parse_lake(LAKE).names
BLOCKED = Outcome(
    "blocked",
    "2026-11-20T10:00:00+00:00",
    "a type has changed",
    remedies=(RebuildTable("shop.public.orders"),),
)


@pytest.fixture(autouse=True)
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    with moto_aws(monkeypatch):
        lake = deploy()
        make_stack("connect", {Output.CONNECTORS: json.dumps([DEBEZIUM, SINK])})
        yield lake


@dataclass
class MskConnect:
    """MSK Connect as in botocore's model, because moto lacks it. It also has another lake's connector."""

    monkeypatch: pytest.MonkeyPatch

    def has(self, **states: str) -> None:
        """Set the connectors' states. A failed connector has a reason."""
        client = boto3.client("kafkaconnect", REGION)
        stub = Stubber(client)
        named = {DEBEZIUM: states.get("debezium"), SINK: states.get("sink")}
        there = {name: state for name, state in named.items() if state} | {
            "tributary-shop-eu-shop-debezium": "FAILED"
        }
        summaries = [
            {"connectorName": name, "connectorState": state, "connectorArn": f"arn:{name}"}
            for name, state in there.items()
        ]
        half = len(summaries) // 2
        asked = {"connectorNamePrefix": "tributary-shop"}
        stub.add_response("list_connectors", {"connectors": summaries[:half], "nextToken": "more"}, asked)
        stub.add_response("list_connectors", {"connectors": summaries[half:]}, {**asked, "nextToken": "more"})
        for name in sorted(name for name, state in named.items() if state not in (None, "RUNNING")):
            stub.add_response(
                "describe_connector",
                {"stateDescription": {"code": "UnknownError", "message": "The slot is gone"}},
                {"connectorArn": f"arn:{name}"},
            )
        stub.activate()
        self.monkeypatch.setattr(AwsSession, "kafkaconnect", client)


@pytest.fixture
def msk_connect(monkeypatch: pytest.MonkeyPatch) -> MskConnect:
    return MskConnect(monkeypatch)


def measure(
    namespace: str, dimensions: Mapping[str, str], ago: timedelta = timedelta(), **values: float
) -> None:
    boto3.client("cloudwatch", REGION).put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
                "Timestamp": datetime.now(UTC) - ago,
                "Value": value,
            }
            for name, value in values.items()
        ],
    )


def status(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    exit_status = main.run(["status", "--aws", "--json"])
    return exit_status, json.loads(capsys.readouterr().out)


def table(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    by_name: Mapping[str, Mapping[str, Any]] = {one["table"]: one for one in found["tables"]}
    return by_name[name]


def test_a_lake_whose_connectors_run_has_no_error(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    exit_status, found = status(capsys)
    assert (exit_status, found["is_well"]) == (0, True)
    assert [one["name"] for one in found["connectors"]] == [SINK, DEBEZIUM]


def test_a_failed_connector_is_reported_with_its_reason(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="FAILED", sink="RUNNING")
    assert main.run(["status", "--aws"]) == 1
    assert f"{DEBEZIUM} is FAILED: The slot is gone" in capsys.readouterr().out


def test_a_table_whose_connector_does_not_run_is_cut_off(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.put_silver_table("orders")
    deployed.put_silver_table("lines")
    deployed.put("quarantine", f"shop/public/lines/{OUTCOME_FILE}", BLOCKED.to_json())
    for state in ("FAILED", None):
        msk_connect.has(debezium=state, sink="RUNNING") if state else msk_connect.has(sink="RUNNING")
        exit_status, found = status(capsys)
        assert exit_status == 1
        states = {one: table(found, f"shop.public.{one}")["state"] for one in ("orders", "lines")}
        assert states == {"orders": "cut off", "lines": "blocked"}


def test_a_missing_connector_is_reported(msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]) -> None:
    msk_connect.has(sink="RUNNING")
    exit_status, found = status(capsys)
    assert exit_status == 1
    assert {one["name"]: one["state"] for one in found["connectors"]} == {
        DEBEZIUM: "MISSING",
        SINK: "RUNNING",
    }


def test_connectors_that_the_lake_file_has_removed_are_not_reported(
    tmp_path: Path, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(f"{LAKE}[aws.connect]\nrunning = false\n")
    msk_connect.has()
    exit_status, found = status(capsys)
    assert (exit_status, found["connectors"]) == (0, [])


def test_a_running_connector_with_a_failed_task_fails_the_status(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    of = {"ConnectorName": DEBEZIUM}
    measure("AWS/KafkaConnect", of, ErroredTaskCount=1, RunningTaskCount=0, WorkerCount=1)
    exit_status, found = status(capsys)
    (connector,) = [one for one in found["connectors"] if one["name"] == DEBEZIUM]
    assert exit_status == 1
    assert (connector["workers"], connector["tasks"], connector["failed_tasks"]) == (1, 0, 1)


def test_a_table_s_freshness_and_lag_are_the_latest_measurements(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    of = {"Lake": "shop", "Table": "shop.public.orders"}
    measure(METRICS_NAMESPACE, of, timedelta(minutes=5), Freshness=90.0, Lag=4000)
    measure(METRICS_NAMESPACE, of, Freshness=2.5, Lag=12)
    measure(METRICS_NAMESPACE, {"Lake": "shop"}, Freshness=2.5, Lag=12)
    measure(METRICS_NAMESPACE, {"Lake": "other", "Table": "shop.public.lines"}, Freshness=1.0)
    exit_status, found = status(capsys)
    assert exit_status == 0
    orders = table(found, "shop.public.orders")
    assert (orders["fresh_seconds"], orders["events_behind"], orders["state"]) == (2.5, 12, "well")
    assert len(found["tables"]) == 1


def test_a_table_with_a_non_ascii_name_is_reported_by_its_name(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    measure(METRICS_NAMESPACE, {"Lake": "shop", "Table": "shop.public.stra\\xdfe"}, Lag=1)
    _, found = status(capsys)
    assert table(found, "shop.public.straße")["events_behind"] == 1


def test_the_lag_of_bronze_is_that_of_the_sink_s_group(
    msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    of = {"Cluster Name": "tributary-shop", "Topic": "shop.shop.public.orders"}
    measure("AWS/Kafka", {**of, "Consumer Group": f"connect-{SINK}"}, SumOffsetLag=7)
    measure("AWS/Kafka", {**of, "Consumer Group": "somebody-else"}, SumOffsetLag=99)
    _, found = status(capsys)
    assert table(found, "shop.public.orders")["bronze_events_behind"] == 7


def test_a_blocked_table_is_reported_with_reason_and_remedy(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    deployed.put_silver_table("lines")
    deployed.put("quarantine", f"shop/public/orders/{OUTCOME_FILE}", BLOCKED.to_json())
    assert main.run(["status", "--aws"]) == 1
    told = capsys.readouterr().out
    assert (
        "shop.public.orders is blocked since 2026-11-20T10:00:00+00:00: A type has changed"
        in told.replace(": a type", ": A type")
    )
    assert "tributary submit rebuild shop.public.orders." in told
    (line,) = [line for line in told.splitlines() if line.startswith("shop.public.lines")]
    assert line.split()[1:] == ["well", "-", "-", "-", "-"]


def test_a_table_that_was_found_to_differ_fails_the_status_until_it_is_found_equal(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.put_silver_table("lines")
    name = TableName("shop", "public", "lines")
    place = verification_name(parse_lake(LAKE).names.table_path(name))
    row = FoundRow({"id": "7"}, "missing", {})
    differing = Verification(name, parts=(CheckedPart(rows=9, differences=1, found=(row,)),), looked_us=1)
    deployed.put("quarantine", place, to_json(differing))
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    assert main.run(["status", "--aws"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "shop.public.lines differs - - - 1 differ" in told
    assert "1 row differs from the source" in told
    assert "tributary snapshot --aws 'shop.public.lines'" in told
    assert "(id=7) is missing in the lake" in told

    equal = Verification(name, parts=(CheckedPart(rows=9, equal_us=1_700_000_000_000_000),), looked_us=1)
    deployed.put("quarantine", place, to_json(equal))
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    exit_status, found = status(capsys)
    assert exit_status == 0
    verified = table(found, "shop.public.lines")["verified"]
    assert (verified["equal_as_of"], verified["remedy"]) == ("2023-11-14T22:13:20+00:00", None)


def test_the_jobs_are_shown_and_the_latest_must_not_have_failed(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = _submit_and_end(deployed, ["ingest", "FAILED"], ["follow", "RUNNING"])
    capsys.readouterr()
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    exit_status, found = status(capsys)
    assert exit_status == 0
    assert [(one["name"], one["state"]) for one in found["jobs"]] == [
        ("tributary-shop-follow", "RUNNING"),
        ("tributary-shop-ingest", "FAILED"),
    ]
    steps[1].state = "FAILED"
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    assert main.run(["status", "--aws"]) == 1
    assert f"step {steps[1].id}: the step tributary-shop-follow is FAILED" in capsys.readouterr().out


def _submit_and_end(deployed: Deployed, *jobs: Sequence[str]) -> list[Any]:
    steps = emr_backends[ACCOUNT][REGION].clusters[deployed.place_id].steps
    for operation, state in jobs:
        assert main.run(["submit", operation]) == 0
        steps[-1].state = state
    return list(steps)


def test_a_terminated_cluster_fails_the_status_which_still_shows_the_rest(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.emr.terminate_job_flows(JobFlowIds=[deployed.place_id])
    deployed.put_silver_table("lines")
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    assert main.run(["status", "--aws"]) == 1
    told = capsys.readouterr().out
    assert "the cluster is terminated" in told
    assert "shop.public.lines" in told


def test_a_missing_stack_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    boto3.client("cloudformation", REGION).delete_stack(StackName=NAMES.stack("connect"))
    assert main.run(["status", "--aws"]) == 1
    assert "stack tributary-shop-connect" in capsys.readouterr().err


def test_an_orphan_is_shown_with_the_command_until_somebody_decides(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    """`old` is of a source that the lake file no longer has, and `dropped` was gone at the last look."""
    deployed.put_silver_table("orders")
    deployed.put_silver_table("dropped")
    deployed.put("silver", "sold/public/old/.hoodie/20260101000000000.deltacommit")
    look = {"tables": {}, "gone": ["shop.public.dropped"]}
    deployed.put("quarantine", look_name("shop"), json.dumps(look))
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    assert main.run(["status", "--aws"]) == 0
    out = capsys.readouterr().out
    assert (
        "shop.public.dropped is an orphan: its source no longer has it. Its rows stay as they are, until you "
        "decide: tributary orphans keep 'shop.public.dropped' --aws, or tributary orphans remove "
        "'shop.public.dropped' --aws"
    ) in out
    assert "sold.public.old is an orphan: the lake file has no [source.sold]." in out
    assert "shop.public.orders is an orphan" not in out


def test_a_table_that_the_last_look_left_out_is_shown_with_its_remedy(
    deployed: Deployed, msk_connect: MskConnect, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.put_silver_table("orders")
    note = {"reasons": ["it has no primary key."], "remedies": ["Give it one."], "awaits_connector": False}
    look = {"tables": {}, "gone": [], "left_out": {"shop.public.visits": note}, "held_back": []}
    deployed.put("quarantine", look_name("shop"), json.dumps(look))
    msk_connect.has(debezium="RUNNING", sink="RUNNING")

    assert main.run(["status", "--aws"]) == 1
    out = capsys.readouterr().out
    assert "shop.public.visits is left out: it has no primary key. Give it one." in out
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    exit_status, found = status(capsys)
    assert (exit_status, table(found, "shop.public.orders")["state"]) == (1, "well")
    visits = table(found, "shop.public.visits")
    assert [visits[name] for name in ("state", "reason", "remedy")] == [
        "left out",
        "it has no primary key.",
        "Give it one.",
    ]


@pytest.mark.parametrize(
    ("decision", "is_stored", "state", "exit_status"),
    [
        ("kept", True, "kept", 0),
        ("removed", True, "removal interrupted", 1),
        ("removed", False, None, 0),
    ],
)
def test_a_decided_orphan_is_shown_as_what_became_of_it(
    deployed: Deployed,
    msk_connect: MskConnect,
    capsys: pytest.CaptureFixture[str],
    decision: Decision,
    is_stored: bool,
    state: str | None,
    exit_status: int,
) -> None:
    table = TableName("sold", "public", "old")
    path = LAKE_NAMES.table_path(table)
    if is_stored:
        deployed.put("silver", f"{path}/.hoodie/20260101000000000.deltacommit")
    decided = DecidedOrphan(table, decision, None, "2026-11-20T10:00:00+00:00")
    deployed.put("quarantine", orphan_name(path), orphan_json(decided))
    msk_connect.has(debezium="RUNNING", sink="RUNNING")
    found_status, found = status(capsys)
    assert found_status == exit_status
    assert {one["table"]: one["state"] for one in found["tables"]} == ({str(table): state} if state else {})
