"""How CloudWatch learns how each table is: lines in its embedded metric format, sent beside the run.

Whatever happens to them, the run goes on: what cannot be sent soon is dropped, and said so once.
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

from spark_app.run.progress import Blocked, CaughtUp, Committed, ProgressWriter, Report
from tributary.contract.aws_names import METRICS_NAMESPACE

Unit = Literal["Count", "Seconds"]

UNITS: Mapping[str, Unit] = {
    "Freshness": "Seconds",
    "Rows": "Count",
    "Events": "Count",
    "Deletes": "Count",
    "Quarantined": "Count",
    "CommitTime": "Seconds",
    "Lag": "Count",
    "Blocked": "Count",
}
"""The metrics of a table.

Freshness   of a commit: how old 95 % of its changes were at most; of a table that is behind: how long it has
            not got on
Lag         events that the source holds and the table has not applied
Blocked     1 where the table waits for a person, else 0
"""

DIMENSIONS = (("Lake", "Table"), ("Lake",))
"""The second one is over all tables, also those that nobody knew when the alarms were made."""

_MOST_WAITING = 10_000
_MOST_IN_A_REQUEST = 1_000
_SECONDS_BETWEEN_REQUESTS = 5.0
_SECONDS_FOR_THE_LAST = 10.0


class LogsClient(Protocol):
    """Of CloudWatch Logs, what is called here."""

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
    """How a table is at a moment. `stuck_seconds`: for how long a table that is behind has not got on."""

    table: str
    lag: int
    stuck_seconds: float
    is_blocked: bool


def metrics_of(observed: Report | TableState) -> tuple[str, Mapping[str, float]] | None:
    """The table, and its metrics by name; None for a report that has none."""
    match observed:
        case Committed():
            values: dict[str, float] = {
                "Rows": observed.rows,
                "Events": observed.events,
                "Deletes": observed.deletes,
                "Quarantined": observed.quarantined,
                "CommitTime": observed.seconds,
            }
            if observed.freshness_ms is not None:
                values["Freshness"] = observed.freshness_ms.p95 / 1000
            return observed.table, values
        case Blocked():
            return observed.table, {"Blocked": 1}
        case CaughtUp():
            return observed.table, {"Lag": 0}
        case TableState():
            return observed.table, {
                "Lag": observed.lag,
                "Freshness": round(observed.stuck_seconds, 3),
                "Blocked": int(observed.is_blocked),
            }
    return None


def metric_line(lake: str, table: str, values: Mapping[str, float], at_ms: int) -> str:
    """One line of the embedded metric format. CloudWatch takes ASCII only in a dimension's value."""
    directive = {
        "Namespace": METRICS_NAMESPACE,
        "Dimensions": DIMENSIONS,
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    named = {"Lake": lake, "Table": table.encode("ascii", "backslashreplace").decode("ascii")}
    return json.dumps({"_aws": {"Timestamp": at_ms, "CloudWatchMetrics": [directive]}, **named, **values})


class MetricsSender:
    """Sends what it is offered to a log group, from a thread of its own."""

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
        """Never waits and never raises."""
        found = metrics_of(observed)
        if found is None:
            return
        at_ms = time.time_ns() // 1_000_000
        line = metric_line(self._lake, *found, at_ms)
        try:
            self._waiting.put_nowait({"timestamp": at_ms, "message": line})
        except Full:
            self._complain("they come faster than CloudWatch takes them")

    def close(self) -> None:
        """Sends what is left, if that takes no longer than some seconds."""
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
        """What has come within some seconds, and whether more may."""
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
        # Threads offer at the same time; CloudWatch refuses a request that is not in the order of time.
        batch.sort(key=lambda event: event["timestamp"])
        place = {"logGroupName": self._log_group, "logStreamName": self._stream}
        try:
            if not self._has_stream:
                self._client.create_log_stream(**place)
                self._has_stream = True
            self._client.put_log_events(**place, logEvents=batch)
        except (BotoCoreError, ClientError) as error:
            self._complain(str(error))

    def _complain(self, why: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            print(f"Some metrics did not reach {self._log_group}: {why}", file=self._errors)


class MeasuredProgress(ProgressWriter):
    """Reports that are written and, where there are metrics in them, also sent."""

    def __init__(self, sender: MetricsSender, out: TextIO = sys.stdout) -> None:
        super().__init__(out)
        self._sender = sender

    def write(self, report: Report) -> None:
        super().write(report)
        self._sender.offer(report)


def logs_client() -> LogsClient:
    """Region and credentials come from the environment. One that does not answer is given up soon."""
    config = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    client = boto3.client("logs", region_name=os.environ.get("AWS_REGION"), config=config)
    return cast(LogsClient, client)
