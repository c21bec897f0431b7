"""The offsets that Kafka Connect has stored for connectors, read from the worker's own topic.

On AWS there is no other way: MSK Connect does not answer requests of Kafka Connect's REST interface.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from tributary.contract.errors import TributaryError
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import TIMEOUT_SECONDS, partitions_of, questions, told_unreachable


class OffsetsUnreadable(TributaryError):
    """The topic with a worker's offsets does not exist, or holds something else."""


@dataclass
class StoredOffsets:
    """The topic `offset.storage.topic` of a worker. Each question reads what has come since the last one.

    Any thread may ask."""

    kafka: KafkaCluster
    topic: str
    _consumer: Consumer = field(repr=False)
    _next: dict[int, int] = field(default_factory=dict, init=False)
    _offsets: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        partitions = partitions_of(self._consumer, self.topic)
        if not partitions:
            raise OffsetsUnreadable("Kafka Connect has no topic of offsets yet", where=f"topic {self.topic}")
        self._next = dict.fromkeys(partitions, 0)
        self._consumer.assign([TopicPartition(self.topic, p, OFFSET_BEGINNING) for p in partitions])

    def of(self, connector: str) -> Mapping[str, Any] | None:
        """Return the offset that was stored last for a connector; None: none is stored.

        Raises KafkaUnreachable and OffsetsUnreadable."""
        with self._lock, told_unreachable(self.kafka):
            self._read_to_end()
            # A connector can have offsets of other source partitions, such as that of a former database.
            found = [offset for (name, _), offset in self._offsets.items() if name == connector]
            return found[-1] if found else None

    def _read_to_end(self) -> None:
        ends = {
            partition: self._consumer.get_watermark_offsets(
                TopicPartition(self.topic, partition), timeout=TIMEOUT_SECONDS, cached=False
            )[1]
            for partition in self._next
        }
        while any(self._next[partition] < end for partition, end in ends.items()):
            message = self._consumer.poll(TIMEOUT_SECONDS)
            if message is None:
                raise OffsetsUnreadable("Kafka sends none of the stored offsets", where=f"topic {self.topic}")
            if message.error() is not None:
                raise KafkaException(message.error())
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._next[partition] = offset + 1
            self._take(message.key(), message.value())

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        """Take note of a record: a key such as `["shop-debezium",{"server":"shop.web"}]`, and its offset.

        Without a value, the offset was deleted. Debezium sends some notifications without an offset."""
        try:
            name, partition = json.loads(key or b"")
            offset = None if value is None else json.loads(value)
        except (TypeError, ValueError) as error:
            raise OffsetsUnreadable(
                "a record is no offset of Kafka Connect", where=f"topic {self.topic}", found=repr(key)
            ) from error
        known = (str(name), json.dumps(partition, sort_keys=True))
        self._offsets.pop(known, None)
        if offset:
            self._offsets[known] = offset


@contextmanager
def stored_offsets(kafka: KafkaCluster, topic: str) -> Iterator[StoredOffsets]:
    """Open a worker's topic of offsets. Raises `OffsetsUnreadable` and `KafkaUnreachable`."""
    with questions(kafka) as consumer:
        yield StoredOffsets(kafka, topic, consumer)
