"""The event: the common form in which every source delivers what Debezium sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tributary.contract.errors import TributaryError

EVENT = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("moved_to", BinaryType()),
        StructField("moved_from", BinaryType()),
    ]
)
"""`key` and `value` are the record's raw bytes. `moved_to` and `moved_from` are the raw bytes of headers.

These are Debezium's headers `__debezium.newkey` and `__debezium.oldkey`, which mark the two halves of a
changed primary key."""

EVENTS_OF_ONE_TASK = 10_000
"""Up to this many events stay in one task: shuffling them between tasks takes longer than processing them."""

MOVED_TO_HEADER = "__debezium.newkey"
MOVED_FROM_HEADER = "__debezium.oldkey"

Positions = Mapping[int, int]
"""By partition, the next offset to read."""


@dataclass(frozen=True)
class OffsetRange:
    """The offsets `first` (included) to `until` (excluded) of one partition."""

    partition: int
    first: int
    until: int

    @property
    def length(self) -> int:
        return self.until - self.first


@dataclass(frozen=True)
class TopicExtent:
    """The offsets of a topic that a source still holds: the first and the one after the last, by partition.

    topic_id  differs from that of an earlier or later topic of the same name; None if the source has no such
              id
    problem   why the source cannot say what comes next, if a person has to help
    """

    beginning: Positions
    end: Positions
    topic_id: str | None = None
    problem: TributaryError | None = None

    def check(self) -> None:
        """Raise the problem, if there is one."""
        if self.problem is not None:
            raise self.problem


class EventSource(Protocol):
    """A source of events. Reading a range twice gives the same events.

    With `keeps_headers`, the two halves of a changed primary key come marked. Otherwise only their position
    shows that they belong together."""

    keeps_headers: ClassVar[bool]

    def topics(self) -> frozenset[str]:
        """Return the names of all topics."""

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        """Return the extent of each of the topics."""

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        """Return the events of the ranges, as `EVENT`, in no order."""


@runtime_checkable
class Dated(Protocol):
    """A source that knows how new a topic's events are."""

    def newest(self, topics: frozenset[str]) -> Mapping[str, int]:
        """Return when the newest event of each topic came, in milliseconds since 1970.

        Topics without an event are left out."""


def ranges_from(start: Positions, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
    """Return the next ranges to read from `start` on, at most `limit` offsets.

    The partitions share the limit evenly. A partition that `start` does not name yet is read from its
    beginning."""
    pending = {
        partition: (start.get(partition, extent.beginning[partition]), until)
        for partition, until in extent.end.items()
    }
    pending = {partition: (first, until) for partition, (first, until) in pending.items() if until > first}
    ranges: list[OffsetRange] = []
    left = limit
    by_length = sorted(pending.items(), key=lambda item: item[1][1] - item[1][0])
    for position, (partition, (first, until)) in enumerate(by_length):
        share = max(1, left // (len(by_length) - position))
        taken = min(share, until - first)
        left -= taken
        ranges.append(OffsetRange(partition, first, first + taken))
    return tuple(sorted(ranges, key=lambda r: r.partition))


def split_at(
    ranges: tuple[OffsetRange, ...], offsets: Positions
) -> tuple[tuple[OffsetRange, ...], tuple[OffsetRange, ...]]:
    """Split the ranges: into the parts before their partition's offset, and the parts from the offset on."""
    before = (replace(r, until=min(r.until, offsets.get(r.partition, r.first))) for r in ranges)
    after = (replace(r, first=max(r.first, offsets.get(r.partition, r.first))) for r in ranges)
    return tuple(r for r in before if r.length > 0), tuple(r for r in after if r.length > 0)


def positions_text(positions: Positions) -> str:
    """Return the positions as text, such as `0:120, 1:98`."""
    return ", ".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items())) or "none"
