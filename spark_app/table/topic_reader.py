"""The sources of a table's events: its topic, and an older source for events that the topic has lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from spark_app.ledger.ledger import Ledger
from spark_app.ledger.topic_checks import check_held, check_topic, fills, lost_partitions
from spark_app.sources.event import (
    EventSource,
    OffsetRange,
    Positions,
    TopicExtent,
    ranges_from,
    split_at,
)


@dataclass
class TopicReader:
    """Reads one topic. `older` has the events that `source` no longer holds, as bronze has those of Kafka."""

    topic: str
    source: EventSource
    older: EventSource | None = None
    topic_id: str | None = field(default=None, init=False)
    """The topic's id as the source last reported it; None if the source cannot tell."""
    _held_from: Positions = field(default_factory=dict, init=False)
    _older_extent: TopicExtent | None = field(default=None, init=False)
    _partitions: frozenset[int] = field(default=frozenset(), init=False)

    def extent(self) -> TopicExtent:
        """Ask the source for the topic's extent."""
        return self.source.extents(frozenset({self.topic}))[self.topic]

    def pending(self, ledger: Ledger, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
        """Return the ranges to apply next, at most `limit` events.

        Raises `PositionLost` if no source holds the next event, `AnotherTopic` if the topic was recreated,
        and the problem of a source that cannot say what comes next."""
        extent.check()
        check_topic(ledger, extent)
        self.topic_id, self._held_from = extent.topic_id, extent.beginning
        self._partitions |= extent.end.keys()
        reaching_back = self._reaching_back(ledger, extent)
        check_held(self.topic, ledger.positions, reaching_back)
        return ranges_from(ledger.positions, reaching_back, limit)

    def read(self, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        """Return the events of the ranges, as `EVENT`, each from a source that holds it."""
        lost, held = split_at(ranges, self._held_from)
        if self.older is None or not lost:
            return self.source.read(self.topic, ranges)
        older = self.older.read(self.topic, lost)
        return older.unionByName(self.source.read(self.topic, held)) if held else older

    def is_partitioned(self, ledger: Ledger, ranges: tuple[OffsetRange, ...]) -> bool:
        """Return whether the topic is known to have more than one partition."""
        return len(self._partitions | ledger.positions.keys() | {r.partition for r in ranges}) > 1

    def _reaching_back(self, ledger: Ledger, extent: TopicExtent) -> TopicExtent:
        """Return the extent, begun earlier for partitions whose next event only `older` still holds."""
        lost = lost_partitions(ledger.positions, extent)
        if not lost or self.older is None or ledger.epoch > 0:
            return extent
        older, positions = self._older_extent, ledger.positions
        if older is None or not all(fills(older, extent, positions, p) for p in lost):
            older = self.older.extents(frozenset({self.topic}))[self.topic]
            self._older_extent = older
        filled = {p: older.beginning[p] for p in lost if fills(older, extent, positions, p)}
        return replace(extent, beginning={**extent.beginning, **filled})


def events_behind(ledger: Ledger, extent: TopicExtent) -> int:
    """Return how many of the topic's events are not applied yet. Offsets without an event count, too."""
    positions = ledger.positions
    return sum(max(0, end - positions.get(partition, 0)) for partition, end in extent.end.items())
