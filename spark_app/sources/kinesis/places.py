"""Places in a stream: how far each shard was read, and which partition and offsets its records got.

A record in Kinesis has a shard and a sequence number of up to 128 digits. When it lands in bronze, it also
gets a partition and an offset, like an event in Kafka. So all that comes after bronze, and the ledger of a
table, are the same for both. This module has no side effects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Shard:
    """A shard that the stream lists. Its parents are those that were split or merged into it."""

    id: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardPlace:
    """How far a shard was read.

    partition  the number that stands for it; no other shard ever gets it
    sequence   of its last record that was read; None if none was
    is_over    it is closed and read to its end
    until_ms   all records that arrived before this time were read, in milliseconds since 1970; None if it was
               never asked for records
    """

    partition: int
    shard: str
    sequence: str | None = None
    is_over: bool = False
    until_ms: int | None = None


@dataclass(frozen=True)
class StreamPlaces:
    """How far a stream was read.

    created   when the stream was created, as Kinesis says; it tells a stream from one of the same name
    shards    in the order of their partitions
    offsets   by topic and partition, the offset of the next record
    """

    created: str | None = None
    shards: tuple[ShardPlace, ...] = ()
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    next_partition: int = 0

    def place(self, shard: str) -> ShardPlace | None:
        return next((place for place in self.shards if place.shard == shard), None)

    def with_shards(self, listed: Iterable[Shard]) -> StreamPlaces:
        """Add the listed shards, and forget those that are over and that the stream no longer lists."""
        ids = [shard.id for shard in listed]  # a parent comes before its children
        kept = tuple(place for place in self.shards if place.shard in ids or not place.is_over)
        new = [shard for shard in ids if self.place(shard) is None]
        numbered = enumerate(new, self.next_partition)
        added = tuple(ShardPlace(partition, shard) for partition, shard in numbered)
        return replace(self, shards=kept + added, next_partition=self.next_partition + len(new))

    def with_places(self, read: Iterable[ShardPlace]) -> StreamPlaces:
        by_shard = {place.shard: place for place in read}
        return replace(self, shards=tuple(by_shard.get(place.shard, place) for place in self.shards))

    def with_offsets(self, offsets: Mapping[str, Mapping[int, int]]) -> StreamPlaces:
        merged = {topic: {**self.offsets.get(topic, {}), **ends} for topic, ends in offsets.items()}
        return replace(self, offsets={**self.offsets, **merged})

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": 1,
                "created": self.created,
                "next_partition": self.next_partition,
                "shards": [
                    [place.partition, place.shard, place.sequence, place.is_over, place.until_ms]
                    for place in self.shards
                ],
                "offsets": {
                    topic: {str(p): end for p, end in ends.items()} for topic, ends in self.offsets.items()
                },
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> StreamPlaces:
        found = json.loads(text)
        return StreamPlaces(
            created=found["created"],
            shards=tuple(ShardPlace(*values) for values in found["shards"]),
            offsets={
                topic: {int(p): end for p, end in ends.items()} for topic, ends in found["offsets"].items()
            },
            next_partition=found["next_partition"],
        )


def readable(places: StreamPlaces, listed: Iterable[Shard]) -> tuple[ShardPlace, ...]:
    """Return the shards to read now: those that are not over, and whose parents are.

    A key's later changes are in a child of the closed shard, so the parent comes first. A parent that the
    stream no longer lists is older than all that it holds."""
    shards = {shard.id: shard for shard in listed}
    found = []
    for place in places.shards:
        parents = shards[place.shard].parents if place.shard in shards else ()
        is_waiting = any(parent in shards and not _is_over(places, parent) for parent in parents)
        if place.shard in shards and not place.is_over and not is_waiting:
            found.append(place)
    return tuple(found)


def vanished(places: StreamPlaces, listed: Iterable[Shard]) -> tuple[ShardPlace, ...]:
    """Return the shards that the stream no longer lists, although they were not read to their end."""
    ids = {shard.id for shard in listed}
    return tuple(place for place in places.shards if place.shard not in ids and not place.is_over)


def may_have_lost(place: ShardPlace, now_ms: int, retention_ms: int) -> bool:
    """Return whether the stream can have deleted records of the shard before they were read."""
    return place.until_ms is not None and place.until_ms < now_ms - retention_ms


def is_after(sequence: str, other: str) -> bool:
    """Return whether a sequence number is higher than another one."""
    return (len(sequence), sequence) > (len(other), other)


def _is_over(places: StreamPlaces, shard: str) -> bool:
    place = places.place(shard)
    return place is not None and place.is_over
