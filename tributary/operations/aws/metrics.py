"""The latest values of CloudWatch metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

_RECENTLY = timedelta(minutes=15)
_PERIOD_SECONDS = 60
_MOST_IN_A_REQUEST = 500
"""GetMetricData's limit."""


@dataclass(frozen=True)
class Metric:
    """A metric. `dimensions` are pairs of name and value."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, namespace: str, name: str, dimensions: Mapping[str, str]) -> Metric:
        return cls(namespace, name, tuple(dimensions.items()))

    def dimension(self, name: str) -> str | None:
        return dict(self.dimensions).get(name)


def find_metrics(
    cloudwatch: CloudWatchClient, namespace: str, name: str, dimensions: Mapping[str, str]
) -> tuple[Metric, ...]:
    """Return the metrics with this name and at least these dimensions that got a value in the last hours."""
    pages = cloudwatch.get_paginator("list_metrics").paginate(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": dimension, "Value": value} for dimension, value in dimensions.items()],
        RecentlyActive="PT3H",
    )
    return tuple(
        Metric.of(namespace, name, {one["Name"]: one["Value"] for one in found.get("Dimensions", ())})
        for page in pages
        for found in page["Metrics"]
    )


def read_latest(cloudwatch: CloudWatchClient, metrics: Sequence[Metric]) -> Mapping[Metric, float]:
    """Return each metric's largest value in its latest minute. Leave out metrics without a recent value."""
    latest: dict[Metric, float] = {}
    now = datetime.now(UTC)
    for start in range(0, len(metrics), _MOST_IN_A_REQUEST):
        asked = metrics[start : start + _MOST_IN_A_REQUEST]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[_query(place, metric) for place, metric in enumerate(asked)],
            StartTime=now - _RECENTLY,
            EndTime=now + timedelta(seconds=_PERIOD_SECONDS),
            ScanBy="TimestampDescending",
        )
        for page in pages:
            for found in page["MetricDataResults"]:
                metric = asked[int(found["Id"].removeprefix("m"))]
                if found["Values"]:
                    latest.setdefault(metric, found["Values"][0])
    return latest


def _query(place: int, metric: Metric) -> MetricDataQueryTypeDef:
    return {
        "Id": f"m{place}",
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
            },
            "Period": _PERIOD_SECONDS,
            "Stat": "Maximum",
        },
    }
