"""A run sends CloudWatch the metrics of each table, and never waits for CloudWatch."""

from __future__ import annotations

import io
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from spark_app.reports import Blocked, CaughtUp, Committed, Freshness, StepsChosen, Stopped
from spark_app.run import metrics
from spark_app.run.metrics import (
    DIMENSIONS,
    OF_LAKE,
    UNITS,
    LogsClient,
    MeasuredProgress,
    MetricsSender,
    TableState,
    logs_client,
    metric_line,
    metrics_of,
)
from spark_app.steps.steps import Name
from tributary.contract.acceleration import Acceleration
from tributary.contract.aws_names import AwsNames

GROUP = AwsNames("shop").log_group("metrics")
COMMIT = Committed(
    table="web.public.orders",
    instant="20260101000000000",
    at="2026-01-01T00:00:00.000+00:00",
    events=7,
    rows=4,
    deletes=1,
    quarantined=2,
    positions={0: 7},
    freshness_ms=Freshness(p50=900, p95=2_500, max=3_000),
    seconds=0.75,
)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with mock_aws():
        boto3.client("logs", "eu-west-1").create_log_group(logGroupName=GROUP)
        yield


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_SECONDS_BETWEEN_REQUESTS", 0.01)


class Refusing:
    """CloudWatch when it cannot be reached."""

    attempts = 0

    def create_log_stream(self, **_: Any) -> None:
        self.attempts += 1
        raise EndpointConnectionError(endpoint_url="logs")

    def put_log_events(self, **_: Any) -> None:
        raise AssertionError("a stream that is not there")


class Hanging:
    """CloudWatch when it does not answer."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def create_log_stream(self, **_: Any) -> None:
        self.asked.set()
        time.sleep(60)

    def put_log_events(self, **_: Any) -> None: ...


class Kept:
    """CloudWatch that keeps the batches that it receives."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Mapping[str, Any]]] = []

    def create_log_stream(self, **_: Any) -> None: ...

    def put_log_events(self, *, logEvents: Sequence[Mapping[str, Any]], **_: Any) -> None:  # noqa: N803
        self.batches.append(logEvents)


def test_a_commit_reports_its_counts_and_its_freshness() -> None:
    assert metrics_of(COMMIT) == (
        "web.public.orders",
        {"Rows": 4, "Events": 7, "Deletes": 1, "Quarantined": 2, "CommitTime": 0.75, "Freshness": 2.5},
    )


def test_a_stuck_table_grows_older_without_a_commit() -> None:
    state = TableState("t", lag=12, stuck_seconds=75.0, is_blocked=False)
    assert metrics_of(state) == ("t", {"Lag": 12, "Freshness": 75.0, "Blocked": 0})


def test_a_blocked_table_is_reported_at_once() -> None:
    assert metrics_of(Blocked("t", "why")) == ("t", {"Blocked": 1})
    lacking = Blocked("t", "why", is_lacking_classes=True)
    assert metrics_of(lacking) == ("t", {"Blocked": 1, "MissingClasses": 1})
    assert metrics_of(CaughtUp("t")) == ("t", {"Lag": 0})
    assert metrics_of(Stopped({"t": "ok"})) is None


@pytest.mark.parametrize(
    ("steps", "wanted", "value"), [("plain", "auto", 1), ("plain", "off", 0), ("accelerated", "auto", 0)]
)
def test_a_start_says_for_the_whole_lake_whether_it_lacks_java(
    steps: Name, wanted: Acceleration, value: int
) -> None:
    found = metrics_of(StepsChosen(steps, "why", wanted))
    assert found is not None
    table, values = found
    assert (table, values) == (OF_LAKE, {"NotAccelerated": value})
    line = json.loads(metric_line("shop", table, values, at_ms=1))
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["Lake"]]
    assert "Table" not in line


@given(
    table=st.text(min_size=1, max_size=50),
    values=st.dictionaries(st.sampled_from(sorted(UNITS)), st.floats(0, 1e12), min_size=1),
    at_ms=st.integers(0, 2**42),
)
def test_a_line_keeps_the_rules_of_the_embedded_metric_format(
    table: str, values: dict[str, float], at_ms: int
) -> None:
    line = json.loads(metric_line("shop", table, values, at_ms))
    assert isinstance(line["_aws"]["Timestamp"], int)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
    assert re.fullmatch(r"[^:]{1,1024}", directive["Namespace"])
    # Every dimension and metric is a member of the root: a text, and a number or up to 100 of them.
    for dimensions in directive["Dimensions"]:
        assert len(dimensions) <= 30
        assert all(isinstance(line[name], str) and line[name].isascii() for name in dimensions)
    assert len(directive["Metrics"]) <= 100
    for metric in directive["Metrics"]:
        assert isinstance(line[metric["Name"]], int | float)
        assert metric["Unit"] in ("Count", "Seconds")
    assert "\n" not in metric_line("shop", table, values, at_ms)


def test_metrics_count_for_each_table_and_for_all_together() -> None:
    (directive,) = json.loads(metric_line("shop", "t", {"Lag": 1}, 0))["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [list(dimensions) for dimensions in DIMENSIONS]
    assert directive["Dimensions"] == [["Lake", "Table"], ["Lake"]]


@pytest.mark.usefixtures("aws")
def test_metrics_arrive_in_the_log_group_in_one_stream_of_the_run() -> None:
    sender = MetricsSender(logs_client(), GROUP, "shop")
    sender.offer(COMMIT)
    sender.offer(Blocked("web.public.orders", "why"))
    sender.close()

    client = boto3.client("logs", "eu-west-1")
    (stream,) = client.describe_log_streams(logGroupName=GROUP)["logStreams"]
    found = client.get_log_events(logGroupName=GROUP, logStreamName=stream["logStreamName"])["events"]
    lines = [json.loads(event["message"]) for event in found]
    assert [line.get("Events", line.get("Blocked")) for line in lines] == [7, 1]
    assert all((line["Lake"], line["Table"]) == ("shop", "web.public.orders") for line in lines)
    assert [event["timestamp"] for event in found] == [line["_aws"]["Timestamp"] for line in lines]


def test_a_request_is_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_SECONDS_BETWEEN_REQUESTS", 0.5)
    clock = chain([3, 1, 2], repeat(4))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock) * 1_000_000)
    client = Kept()
    sender = MetricsSender(client, GROUP, "shop")
    for _ in range(3):
        sender.offer(CaughtUp("t"))
    sender.close()
    (batch,) = client.batches
    assert [event["timestamp"] for event in batch] == [1, 2, 3]


def test_a_stream_whose_creation_was_not_confirmed_is_used() -> None:
    class Forgetful(Kept):
        attempts = 0

        def create_log_stream(self, **_: Any) -> None:
            self.attempts += 1
            if self.attempts == 1:
                raise EndpointConnectionError(endpoint_url="logs")
            there = {"Error": {"Code": "ResourceAlreadyExistsException", "Message": "It exists"}}
            raise ClientError(cast("Any", there), "CreateLogStream")

    logs = Forgetful()
    sender = MetricsSender(logs, GROUP, "shop", io.StringIO())
    for _ in range(2):
        sender.offer(COMMIT)
        time.sleep(0.2)
    sender.close()
    assert (logs.attempts, len(logs.batches)) == (2, 1)


def test_without_cloudwatch_the_run_continues_and_says_so_once() -> None:
    errors, client = io.StringIO(), Refusing()
    sender = MetricsSender(client, GROUP, "shop", errors)
    while client.attempts < 3:
        sender.offer(COMMIT)
    sender.close()
    assert errors.getvalue().count("\n") == 1
    assert GROUP in errors.getvalue()


def test_an_offer_never_waits_and_the_end_of_a_run_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_MOST_WAITING", 3)
    monkeypatch.setattr(metrics, "_SECONDS_FOR_THE_LAST", 0.1)
    errors, client = io.StringIO(), Hanging()
    sender = MetricsSender(client, GROUP, "shop", errors)
    sender.offer(COMMIT)
    assert client.asked.wait(10)
    started = time.monotonic()
    for _ in range(100):
        sender.offer(COMMIT)
    sender.close()
    assert time.monotonic() - started < 5
    assert "faster than CloudWatch accepts them" in errors.getvalue()


def test_reports_are_written_as_before_and_also_sent() -> None:
    out, client = io.StringIO(), Kept()
    sender = MetricsSender(client, GROUP, "shop")
    progress = MeasuredProgress(sender, out)
    progress.write(COMMIT)
    progress.write(Stopped({"web.public.orders": "ok"}))
    sender.close()
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["commit", "stopped"]
    assert len([event for batch in client.batches for event in batch]) == 1


def test_botocores_client_has_the_methods_that_are_called() -> None:
    client = cast(LogsClient, boto3.client("logs", "eu-west-1"))
    assert callable(client.create_log_stream)
    assert callable(client.put_log_events)
