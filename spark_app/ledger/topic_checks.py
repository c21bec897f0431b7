"""Checks that a topic is the one that a table has read, and holds the events that come next."""

from __future__ import annotations

from spark_app.ledger.ledger import Ledger
from spark_app.sources.event import OffsetRange, Positions, TopicExtent, positions_text
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Ingest, OpenEpoch


class PositionLost(TributaryError):
    """The source does not hold the events that come next."""


class AnotherTopic(TributaryError):
    """The topic is not the one, though of the same name, to which the table's positions belong."""


def check_topic(ledger: Ledger, extent: TopicExtent) -> None:
    where = f"topic {ledger.topic}"
    if extent.topic_id is None and ledger.epoch > 0:
        raise PositionLost(
            what="The source does not tell apart the topics that had this name one after the other",
            where=where,
            found=f"a table in its epoch {ledger.epoch}",
            remedy="Read from Kafka.",
        )
    is_shorter = any(position > extent.end.get(p, 0) for p, position in ledger.positions.items())
    is_known_otherwise = None not in (ledger.topic_id, extent.topic_id) and ledger.topic_id != extent.topic_id
    if is_known_otherwise or (is_shorter and extent.topic_id is not None):
        raise AnotherTopic(
            what="The topic was recreated after the table had read it",
            where=where,
            found=f"topic id {extent.topic_id}, events up to {positions_text(extent.end)}",
            expected=f"topic id {ledger.topic_id}, events up to {positions_text(ledger.positions)} or later",
            remedy=OpenEpoch(),
        )
    if is_shorter:
        raise PositionLost(
            what="The source ends before the position that the table has reached",
            where=where,
            found=f"events up to {positions_text(extent.end)}",
            expected=f"events up to {positions_text(ledger.positions)} or later",
            remedy="Wait until the sink has landed the last events in bronze, or read from Kafka.",
        )


def lost_partitions(positions: Positions, extent: TopicExtent) -> frozenset[int]:
    return frozenset(p for p, beginning in extent.beginning.items() if positions.get(p, 0) < beginning)


def fills(older: TopicExtent, extent: TopicExtent, positions: Positions, partition: int) -> bool:
    """Return whether the older source holds everything from the position to the beginning of the extent."""
    begins, ends = older.beginning.get(partition), older.end.get(partition, 0)
    return (
        begins is not None and begins <= positions.get(partition, 0) and ends >= extent.beginning[partition]
    )


def check_held(topic: str, positions: Positions, extent: TopicExtent) -> None:
    for partition in sorted(lost_partitions(positions, extent)):
        raise PositionLost(
            what="The events that come next are not held any more",
            where=f"topic {topic}, partition {partition}",
            found=f"the first offset held is {extent.beginning[partition]}",
            expected=f"offset {positions.get(partition, 0)}",
            remedy=["Read them from bronze, if bronze has them.", Ingest(events_from="bronze")],
        )


def check_replayable(topic: str, ranges: tuple[OffsetRange, ...], extent: TopicExtent) -> None:
    for r in ranges:
        held = (extent.beginning.get(r.partition, 0), extent.end.get(r.partition, 0))
        if held[0] > r.first or held[1] < r.until:
            raise PositionLost(
                what="The source does not hold all events since the quarantined ones",
                where=f"topic {topic}, partition {r.partition}",
                found=f"offsets {held[0]} to {held[1] - 1}",
                expected=f"offsets {r.first} to {r.until - 1}",
                remedy="Replay from bronze, and wait until the sink has landed the last events.",
            )
