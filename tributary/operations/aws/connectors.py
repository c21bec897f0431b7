"""The status of the lake's connectors on MSK Connect."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tributary.aws.session import AwsSession
from tributary.operations.aws.metrics import Metric, read_latest

if TYPE_CHECKING:
    from mypy_boto3_kafkaconnect.type_defs import ConnectorSummaryTypeDef

_AT_WORK = ("RUNNING", "UPDATING", "RESTARTING")
_NAMESPACE = "AWS/KafkaConnect"
_WORKERS, _RUNNING, _ERRORED = "WorkerCount", "RunningTaskCount", "ErroredTaskCount"


@dataclass(frozen=True)
class Connector:
    """A connector on MSK Connect.

    state  MSK Connect's, or MISSING
    workers, tasks, failed_tasks  CloudWatch's latest values; None without a recent one
    """

    name: str
    state: str
    workers: int | None = None
    tasks: int | None = None
    failed_tasks: int | None = None
    reason: str | None = None

    @property
    def is_well(self) -> bool:
        return self.state in _AT_WORK and not self.failed_tasks


def read_connectors(session: AwsSession, prefix: str, names: Collection[str]) -> tuple[Connector, ...]:
    """Return the connectors with these names. A missing one is MISSING. All names begin with `prefix`."""
    found = {one["connectorName"]: one for one in _list(session, prefix) if one["connectorName"] in names}
    measured = _read_counts(session, list(found))
    return tuple(
        _connector(session, found[name], measured[name]) if name in found else Connector(name, "MISSING")
        for name in sorted(names)
    )


def read_config(session: AwsSession, name: str) -> Mapping[str, str] | None:
    """Return the config of a connector; None: there is no such connector."""
    arns = [one["connectorArn"] for one in _list(session, name) if one["connectorName"] == name]
    if not arns:
        return None
    return session.kafkaconnect.describe_connector(connectorArn=arns[0])["connectorConfiguration"]


def _list(session: AwsSession, prefix: str) -> Iterator[ConnectorSummaryTypeDef]:
    pages = session.kafkaconnect.get_paginator("list_connectors")
    for page in pages.paginate(connectorNamePrefix=prefix):
        yield from page["connectors"]


def _read_counts(session: AwsSession, connectors: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    metrics = {
        (connector, name): Metric.of(_NAMESPACE, name, {"ConnectorName": connector})
        for connector in connectors
        for name in (_WORKERS, _RUNNING, _ERRORED)
    }
    latest = read_latest(session.cloudwatch, list(metrics.values()))
    counts: dict[str, dict[str, int]] = {connector: {} for connector in connectors}
    for (connector, name), metric in metrics.items():
        if metric in latest:
            counts[connector][name] = int(latest[metric])
    return counts


def _connector(session: AwsSession, summary: ConnectorSummaryTypeDef, counts: Mapping[str, int]) -> Connector:
    reason = None
    if summary["connectorState"] not in _AT_WORK:
        described = session.kafkaconnect.describe_connector(connectorArn=summary["connectorArn"])
        reason = described.get("stateDescription", {}).get("message")
    return Connector(
        name=summary["connectorName"],
        state=summary["connectorState"],
        workers=counts.get(_WORKERS),
        tasks=counts.get(_RUNNING),
        failed_tasks=counts.get(_ERRORED),
        reason=reason,
    )
