"""Counts changes while a query computes them: the Java class ChangeSurvey.

What it replaces is a second query over the same changes, which aggregates them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_app.jvm.java_classes import java_class


@dataclass(frozen=True)
class Applied:
    """The highest position that was applied of a partition, and the latest time (microseconds since 1970)."""

    position: bytes
    source_us: int


@dataclass(frozen=True)
class FoundSnapshot:
    """A snapshot whose reads a task has seen.

    source_us     when its transaction began, in microseconds since 1970
    log_position  of all its reads
    offset        of its first read
    """

    source_us: int
    log_position: bytes
    offset: int


@dataclass(frozen=True)
class FoundTruncate:
    """A truncate that a task has seen; `source_us` is None if the source told no time."""

    offset: int
    position: bytes
    log_position: bytes
    source_us: int | None


@dataclass(frozen=True)
class Found:
    """What a task has found of the changes of one partition. Times are in microseconds since 1970.

    changes             all changes; the counts below are parts of them
    bad                 changes with a reason; the facts below are about the others
    inserted            creates and reads
    has_unavailable     whether some change does not know all its values
    has_moved           whether some change is half of a changed primary key
    first_log_position  the lowest
    first_position      the lowest of a streamed change
    first_rewound       the offset of the first change with a lower position than `Applied` and a later time
    highest_positions   of streamed changes by offset: each position that no later change reaches
    latest_times        of streamed changes by offset: each time that no later change reaches
    timed               the number of streamed changes with a time
    times               the quantiles of these times
    """

    partition: int
    changes: int
    bad: int
    of_unknown_schema: int
    inserted: int
    deletes: int
    has_unavailable: bool
    has_moved: bool
    first_log_position: bytes | None
    first_position: bytes | None
    first_rewound: int | None
    snapshots: tuple[FoundSnapshot, ...]
    truncates: tuple[FoundTruncate, ...]
    highest_positions: Mapping[int, bytes]
    latest_times: Mapping[int, int]
    timed: int
    times: tuple[int, ...]


@dataclass(frozen=True)
class ChangeCounter:
    """Counts the changes of one batch."""

    _java: Any = field(repr=False)

    @staticmethod
    def beside(applied: Mapping[int, Applied]) -> ChangeCounter:
        """Make a counter that compares changes with what was applied, by partition."""
        spark = SparkSession.active()
        text = json.dumps(
            {
                partition: {"position": b64encode(at.position).decode(), "source_us": at.source_us}
                for partition, at in applied.items()
            }
        )
        return ChangeCounter(java_class(spark, "ChangeSurvey").of(spark._jsparkSession, text))

    def counted(self, changes: DataFrame) -> DataFrame:
        """Return the same changes, which are counted when they are computed.

        They have at least these columns: partition `int`, offset `bigint`, op, key, moved_to, moved_from
        `string`, source_ts `timestamp`, position, log_position `binary`, snapshot `string`, unavailable
        `array<string>`, reason `string`."""
        return DataFrame(self._java.counted(changes._jdf), changes.sparkSession)

    def found(self) -> list[Found]:
        """Return what the tasks have found, once all changes have been computed."""
        return [_found(task) for task in json.loads(self._java.found())]


def _found(task: Mapping[str, Any]) -> Found:
    read = {
        "first_log_position": _bytes(task["first_log_position"]),
        "first_position": _bytes(task["first_position"]),
        "snapshots": tuple(
            FoundSnapshot(**{**each, "log_position": b64decode(each["log_position"])})
            for each in task["snapshots"]
        ),
        "truncates": tuple(
            FoundTruncate(
                **{
                    **each,
                    "position": b64decode(each["position"]),
                    "log_position": b64decode(each["log_position"]),
                }
            )
            for each in task["truncates"]
        ),
        "highest_positions": {
            int(offset): b64decode(position) for offset, position in task["highest_positions"].items()
        },
        "latest_times": {int(offset): time_us for offset, time_us in task["latest_times"].items()},
        "times": tuple(task["times"]),
    }
    return Found(**{**task, **read})


def _bytes(base64: str | None) -> bytes | None:
    return None if base64 is None else b64decode(base64)
