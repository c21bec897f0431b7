"""The log groups of a deployed lake in CloudWatch, and the ends of their logs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

_STREAMS = 4
"""A group has a stream for each worker or function. The others wrote longer ago."""
_EVENTS = 300
"""The number of events that are read of each stream."""


def read_log_groups(logs: CloudWatchLogsClient, prefix: str) -> Sequence[str]:
    """Return the names of the groups that begin with the prefix, without it, sorted."""
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
    found = (group.get("logGroupName", "") for page in pages for group in page["logGroups"])
    return sorted(name.removeprefix(prefix) for name in found)


def read_last_events(logs: CloudWatchLogsClient, group: str) -> Sequence[str]:
    """Return the last events of the group's latest streams, oldest first. Raises ClientError."""
    streams = logs.describe_log_streams(
        logGroupName=group, orderBy="LastEventTime", descending=True, limit=_STREAMS
    )["logStreams"]

    def read(stream: str) -> Sequence[tuple[int, str]]:
        found = logs.get_log_events(
            logGroupName=group, logStreamName=stream, startFromHead=False, limit=_EVENTS
        )
        return [(event.get("timestamp", 0), event.get("message", "")) for event in found["events"]]

    with ThreadPoolExecutor(_STREAMS) as pool:
        found = pool.map(read, [stream.get("logStreamName", "") for stream in streams])
        events = [event for of_stream in found for event in of_stream]
    return [message for _, message in sorted(events, key=lambda event: event[0])]
