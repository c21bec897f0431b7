"""Tell CloudWatch what a verification has found. Alarms and the dashboard read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from tributary.contract.aws_names import METRICS_NAMESPACE, VerificationMetric, dimension_value
from tributary.contract.table_name import TableName
from tributary.operations.verify.record import Verification
from tributary.operations.verify.view import is_different, verified_as_of

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.literals import StandardUnitType
    from mypy_boto3_cloudwatch.type_defs import MetricDatumTypeDef

_MOST_IN_A_REQUEST = 1_000
"""PutMetricData's limit."""


def publish(
    cloudwatch: CloudWatchClient, lake: str, found: Mapping[TableName, Verification], now: datetime
) -> None:
    """Send each table's metrics, and those of the whole lake. Raises boto3's errors.

    found  what is known of all tables
    """
    data = list(_data(lake, found, now))
    for start in range(0, len(data), _MOST_IN_A_REQUEST):
        cloudwatch.put_metric_data(
            Namespace=METRICS_NAMESPACE, MetricData=data[start : start + _MOST_IN_A_REQUEST]
        )


def _data(lake: str, found: Mapping[TableName, Verification], now: datetime) -> Iterator[MetricDatumTypeDef]:
    for name, unit, measure, of_lake in _MEASURES:
        measured = {table: measure(one, now) for table, one in found.items()}
        known = {table: value for table, value in measured.items() if value is not None}
        for table, value in known.items():
            yield _datum(name, unit, value, now, {"Lake": lake, "Table": dimension_value(str(table))})
        if known or of_lake is sum:
            yield _datum(name, unit, of_lake(known.values()), now, {"Lake": lake})


def _datum(
    name: str, unit: StandardUnitType, value: float, now: datetime, dimensions: Mapping[str, str]
) -> MetricDatumTypeDef:
    return {
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": each} for key, each in dimensions.items()],
        "Timestamp": now,
        "Unit": unit,
        "Value": value,
    }


def _age(found: Verification, now: datetime) -> float | None:
    moment = verified_as_of(found)
    return None if moment is None else (now - moment).total_seconds()


def _is_unproven(found: Verification) -> int:
    return int(is_different(found) or verified_as_of(found) is None)


_Measure = tuple[
    str,
    "StandardUnitType",
    Callable[[Verification, datetime], float | None],
    Callable[[Iterable[float]], float],
]

_MEASURES: tuple[_Measure, ...] = (
    (VerificationMetric.DIFFERING_ROWS, "Count", lambda found, _: found.differences, sum),
    (VerificationMetric.UNPROVEN, "Count", lambda found, _: _is_unproven(found), sum),
    (VerificationMetric.PROOF_AGE, "Seconds", _age, max),
)
"""Name, unit, a table's value, and how the tables' values become that of the lake."""
