"""Send each table's metrics to CloudWatch, as log lines in its embedded metric format.

A failure to send never stops the run. Metrics that cannot be sent soon are dropped, with one warning.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, Literal, Protocol, TextIO, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spark_app.reports import Blocked, CaughtUp, Committed, ProgressWriter, Report, StepsChosen
from tributary.contract.aws_names import METRICS_NAMESPACE, IngestMetric, dimension_value

Unit = Literal["Count", "Seconds"]

UNITS: Mapping[str, Unit] = {
    IngestMetric.FRESHNESS: "Seconds",
    IngestMetric.ROWS: "Count",
    IngestMetric.EVENTS: "Count",
    IngestMetric.DELETES: "Count",
    IngestMetric.QUARANTINED: "Count",
    IngestMetric.COMMIT_TIME: "Seconds",
    IngestMetric.LAG: "Count",
    IngestMetric.BLOCKED: "Count",
    IngestMetric.MISSING_CLASSES: "Count",
    IngestMetric.NOT_ACCELERATED: "Count",
}

DIMENSIONS = (("Lake", "Table"), ("Lake",))
"""The second set covers all tables, including those that did not exist when the alarms were created."""

OF_LAKE = ""
"""The table of a metric that belongs to no table."""

_MOST_WAITING = 10_000
_MOST_IN_A_REQUEST = 1_000
_SECONDS_BETWEEN_REQUESTS = 5.0
_SECONDS_FOR_THE_LAST = 10.0


class LogsClient(Protocol):
    """The calls of CloudWatch Logs that this module uses."""

    def create_log_stream(self, *, logGroupName: str, logStreamName: str) -> Any: ...  # noqa: N803

    def put_log_events(
        self,
        *,
        logGroupName: str,  # noqa: N803
        logStreamName: str,  # noqa: N803
        logEvents: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> Any: ...


@dataclass(frozen=True)
class TableState:
    """A table's state at one moment. `stuck_seconds`: the time without progress of a table with a backlog."""

    table: str
    lag: int
    stuck_seconds: float
    is_blocked: bool


def metrics_of(observed: Report | TableState) -> tuple[str, Mapping[str, float]] | None:
    """Return the table or `OF_LAKE`, and its metrics by name. Return None if the report has none."""
    match observed:
        case StepsChosen():
            is_lacking = observed.steps == "plain" and observed.wanted != "off"
            return OF_LAKE, {IngestMetric.NOT_ACCELERATED: int(is_lacking)}
        case Committed():
            values: dict[str, float] = {
                IngestMetric.ROWS: observed.rows,
                IngestMetric.EVENTS: observed.events,
                IngestMetric.DELETES: observed.deletes,
                IngestMetric.QUARANTINED: observed.quarantined,
                IngestMetric.COMMIT_TIME: observed.seconds,
            }
            if observed.freshness_ms is not None:
                values[IngestMetric.FRESHNESS] = observed.freshness_ms.p95 / 1000
            return observed.table, values
        case Blocked():
            lacking = {IngestMetric.MISSING_CLASSES: 1} if observed.is_lacking_classes else {}
            return observed.table, {IngestMetric.BLOCKED: 1, **lacking}
        case CaughtUp():
            return observed.table, {IngestMetric.LAG: 0}
        case TableState():
            return observed.table, {
                IngestMetric.LAG: observed.lag,
                IngestMetric.FRESHNESS: round(observed.stuck_seconds, 3),
                IngestMetric.BLOCKED: int(observed.is_blocked),
            }
    return None


def metric_line(lake: str, table: str, values: Mapping[str, float], at_ms: int) -> str:
    """Return one line of the embedded metric format. Dimension values must be ASCII."""
    directive = {
        "Namespace": METRICS_NAMESPACE,
        "Dimensions": DIMENSIONS if table else DIMENSIONS[1:],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    named = {"Lake": lake}
    if table:
        named["Table"] = dimension_value(table)
    return json.dumps({"_aws": {"Timestamp": at_ms, "CloudWatchMetrics": [directive]}, **named, **values})


class MetricsSender:
    """A sender of metrics to a log group, with its own thread."""

    def __init__(self, client: LogsClient, log_group: str, lake: str, errors: TextIO = sys.stderr) -> None:
        self._client = client
        self._log_group = log_group
        self._lake = lake
        self._errors = errors
        self._stream = f"{datetime.now(UTC):%Y-%m-%d/%H%M%S}-{uuid.uuid4().hex[:8]}"
        self._has_stream = False
        self._has_complained = False
        self._waiting: Queue[dict[str, Any] | None] = Queue(_MOST_WAITING)
        self._thread = Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def offer(self, observed: Report | TableState) -> None:
        """Queue the metrics. Never wait and never raise."""
        found = metrics_of(observed)
        if found is None:
            return
        at_ms = time.time_ns() // 1_000_000
        line = metric_line(self._lake, *found, at_ms)
        try:
            self._waiting.put_nowait({"timestamp": at_ms, "message": line})
        except Full:
            self._complain("they arrive faster than CloudWatch accepts them")

    def close(self) -> None:
        """Send the remaining metrics, but give up after a few seconds."""
        try:
            self._waiting.put(None, timeout=_SECONDS_FOR_THE_LAST)
        except Full:
            return
        self._thread.join(_SECONDS_FOR_THE_LAST)

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._next_batch()
            if batch:
                self._send(batch)

    def _next_batch(self) -> tuple[list[dict[str, Any]], bool]:
        """Collect the metrics of a few seconds. Return them, and whether more can follow."""
        batch: list[dict[str, Any]] = []
        deadline = time.monotonic() + _SECONDS_BETWEEN_REQUESTS
        while len(batch) < _MOST_IN_A_REQUEST:
            try:
                event = self._waiting.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            if event is None:
                return batch, False
            batch.append(event)
        return batch, True

    def _send(self, batch: list[dict[str, Any]]) -> None:
        # Several threads offer metrics, but CloudWatch refuses events that are not sorted by time.
        batch.sort(key=lambda event: event["timestamp"])
        place = {"logGroupName": self._log_group, "logStreamName": self._stream}
        try:
            if not self._has_stream:
                self._create(place)
                self._has_stream = True
            self._client.put_log_events(**place, logEvents=batch)
        except (BotoCoreError, ClientError) as error:
            self._complain(str(error))

    def _create(self, place: Mapping[str, str]) -> None:
        try:
            self._client.create_log_stream(**place)
        except ClientError as error:
            # The answer to an earlier attempt may have been lost.
            if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                raise

    def _complain(self, why: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            print(f"Some metrics did not reach {self._log_group}: {why}", file=self._errors)


class MeasuredProgress(ProgressWriter):
    """A writer of reports that also sends their metrics."""

    def __init__(self, sender: MetricsSender, out: TextIO = sys.stdout) -> None:
        super().__init__(out)
        self._sender = sender

    def write(self, report: Report) -> None:
        super().write(report)
        self._sender.offer(report)


def logs_client() -> LogsClient:
    """Return a client with the environment's region and credentials. It gives up soon without an answer."""
    config = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    client = boto3.client("logs", region_name=os.environ.get("AWS_REGION"), config=config)
    return cast(LogsClient, client)
