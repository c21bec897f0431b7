"""What a pass over the changes of a batch finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame


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


class ChangeCounter(Protocol):
    """Counts the changes of one batch.

    They have at least these columns: partition `int`, offset `bigint`, op, key, moved_to, moved_from
    `string`, source_ts `timestamp`, position, log_position `binary`, snapshot `string`, unavailable
    `array<string>`, reason `string`."""

    def counted(self, changes: DataFrame) -> DataFrame:
        """Return the same changes, which may be counted when they are computed. No Spark job."""

    def found(self, held: DataFrame) -> Sequence[Found]:
        """Return what there is in the changes that `counted` returned, which are computed and held."""

    def found_in(self, changes: DataFrame) -> Sequence[Found]:
        """Return what there is in changes that nothing has computed yet."""
