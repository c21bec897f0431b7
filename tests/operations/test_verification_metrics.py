"""The metrics of a verification in CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from tests.cli.deployed import REGION, moto_aws
from tributary.contract.aws_names import METRICS_NAMESPACE
from tributary.contract.table_name import TableName
from tributary.operations.aws.verification_metrics import publish
from tributary.operations.verify.record import CheckedPart, Verification

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR_AGO_US = int((NOW - timedelta(hours=1)).timestamp() * 1e6)

ORDERS = TableName("web", "public", "orders")
CAFES = TableName("web", "public", "cafés")
LINES = TableName("web", "public", "lines")
FOUND = {
    ORDERS: Verification(ORDERS, parts=(CheckedPart(rows=9, differences=2),)),
    CAFES: Verification(CAFES, parts=(CheckedPart(rows=9, equal_us=HOUR_AGO_US),)),
    LINES: Verification(LINES, problem="it is paused"),
}


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with moto_aws(monkeypatch):
        yield boto3.client("cloudwatch", REGION)


def _values(cloudwatch: Any, name: str) -> dict[str, float]:
    """Return the values of a metric by table. The one of the whole lake is under ''."""
    found = {}
    for metric in cloudwatch.list_metrics(Namespace=METRICS_NAMESPACE, MetricName=name)["Metrics"]:
        dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        assert dimensions["Lake"] == "shop"
        points = cloudwatch.get_metric_statistics(
            Namespace=METRICS_NAMESPACE,
            MetricName=name,
            Dimensions=metric["Dimensions"],
            StartTime=NOW - timedelta(minutes=5),
            EndTime=NOW + timedelta(minutes=5),
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
        found[dimensions.get("Table", "")] = points[0]["Maximum"]
    return found


def test_each_table_and_the_lake_have_their_metrics(cloudwatch: Any) -> None:
    publish(cloudwatch, "shop", FOUND, NOW)
    names = {name: str(name).encode("ascii", "backslashreplace").decode() for name in FOUND}
    assert _values(cloudwatch, "DifferingRows") == {
        names[ORDERS]: 2,
        names[CAFES]: 0,
        names[LINES]: 0,
        "": 2,
    }
    assert _values(cloudwatch, "Unproven") == {names[ORDERS]: 1, names[CAFES]: 0, names[LINES]: 1, "": 2}
    # A table without a whole proof has no age, and the lake's is that of its oldest proof.
    assert _values(cloudwatch, "ProofAge") == {names[CAFES]: 3600, "": 3600}


def test_a_lake_whose_last_table_has_gone_has_no_rows_that_differ(cloudwatch: Any) -> None:
    publish(cloudwatch, "shop", {}, NOW)
    assert _values(cloudwatch, "DifferingRows") == {"": 0}
    assert _values(cloudwatch, "ProofAge") == {}


def test_many_tables_are_sent_in_requests_that_cloudwatch_accepts() -> None:
    sent: list[int] = []

    class Client:
        def put_metric_data(self, *, MetricData: list[Any], **_: Any) -> None:  # noqa: N803
            sent.append(len(MetricData))

    tables = [TableName("web", "public", f"t{number}") for number in range(1_200)]
    publish(Client(), "shop", {table: Verification(table) for table in tables}, NOW)  # type: ignore[arg-type]
    assert sent == [1_000, 1_000, 402]
