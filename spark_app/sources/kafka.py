"""Read events from Kafka: Spark reads the records, and Kafka's own client looks up the offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark_app.jvm.kafka_events import read_kafka_events
from spark_app.sources.event import (
    EVENT,
    EVENTS_OF_ONE_TASK,
    MOVED_FROM_HEADER,
    MOVED_TO_HEADER,
    OffsetRange,
    TopicExtent,
)

_OFFSET = re.compile(r"([A-Za-z0-9._-]+)-([0-9]+)=([0-9]+)")
"""An entry in the text of a Java map from TopicPartition to Long. Topic names have no other characters."""

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_AS_BYTES: Mapping[str, str] = {"key.deserializer": _BYTES, "value.deserializer": _BYTES}
REQUEST_TIMEOUT_MS = 30_000

_READING: Mapping[str, str] = {
    # Only the table decides which offsets to read.
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "max.poll.records": "2000",
    "max.partition.fetch.bytes": str(4 * 2**20),
    "fetch.max.wait.ms": "10",
}
"""A reader with a backlog takes all it can get at once. The wait is short because Spark asks for the topic's
end after each poll, and the broker answers on the same connection only when the next fetch is over."""

MSK_IAM: Mapping[str, str] = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    "reconnect.backoff.ms": "1000",
    "reconnect.backoff.max.ms": "10000",
}
"""Client options to log in to Amazon MSK as the IAM role that runs the app.

The last two are for small brokers, which accept only four new connections a second.
"""


@dataclass
class KafkaSource:
    """The topics of a Kafka cluster.

    group_prefix    the prefix of the consumer groups of Spark's readers
    client_options  properties of the Kafka clients (security, …), with Kafka's names
    """

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession
    bootstrap_servers: str
    group_prefix: str
    client_options: Mapping[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _consumer: Any = field(default=None, repr=False)
    _partitions: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    _admin: Any = field(default=None, repr=False)
    _topic_ids: dict[str, str] = field(default_factory=dict, repr=False)

    def topics(self) -> frozenset[str]:
        with self._lock:
            self._partitions.clear()
            self._topic_ids.clear()
            return frozenset(map(str, _items(self._client().listTopics().keySet())))

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        """Return the extents of the partitions that were known at the last call of `topics` or later."""
        with self._lock:
            client = self._client()
            partitions = [partition for topic in topics for partition in self._partitions_of(topic)]
            beginning = _by_topic(client.beginningOffsets(partitions))
            end = _by_topic(client.endOffsets(partitions))
            ids = self._ids_of(topics)
        return {
            topic: TopicExtent(beginning.get(topic, {}), end.get(topic, {}), ids[topic]) for topic in topics
        }

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        return read_kafka_events(
            self.spark,
            self._reader_properties(topic),
            topic,
            [(r.partition, r.first, r.until) for r in ranges],
            # Otherwise, one task would read and decode a topic of one partition.
            self._tasks(sum(r.length for r in ranges)),
            (MOVED_TO_HEADER, MOVED_FROM_HEADER),
            EVENT,
        )

    def _tasks(self, events: int) -> int:
        return min(self.spark.sparkContext.defaultParallelism, 1 + events // EVENTS_OF_ONE_TASK)

    def close(self) -> None:
        with self._lock:
            for client in (self._consumer, self._admin):
                if client is not None:
                    client.close()
            self._consumer = self._admin = None

    def _client(self) -> Any:
        """Return a consumer without a group, for metadata only. It is not thread-safe, so hold the lock."""
        if self._consumer is None:
            properties = self._java_properties(_AS_BYTES)
            self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        return self._consumer

    def _reader_properties(self, topic: str) -> Mapping[str, str]:
        # Spark keeps an executor's consumer, and what it has fetched ahead, for the group's next batch.
        group = {"group.id": f"{self.group_prefix}-{topic}"}
        return self._properties({**_AS_BYTES, **_READING, **group})

    def _properties(self, own: Mapping[str, str]) -> Mapping[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "default.api.timeout.ms": str(REQUEST_TIMEOUT_MS),
            **own,
            **self.client_options,
        }

    def _java_properties(self, own: Mapping[str, str]) -> Any:
        properties = self._jvm.java.util.Properties()
        for name, value in self._properties(own).items():
            properties.setProperty(name, value)
        return properties

    def _ids_of(self, topics: frozenset[str]) -> Mapping[str, str]:
        """Return Kafka's ids of the topics (KIP-516). Each is looked up once after a call of `topics`."""
        unknown = topics - self._topic_ids.keys()
        if unknown:
            if self._admin is None:
                self._admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(
                    self._java_properties({})
                )
            names = self._jvm.java.util.ArrayList()
            for topic in unknown:
                names.add(topic)
            described = self._admin.describeTopics(names).allTopicNames().get()
            for entry in _items(described.entrySet()):
                self._topic_ids[str(entry.getKey())] = str(entry.getValue().topicId().toString())
        return self._topic_ids

    def _partitions_of(self, topic: str) -> list[Any]:
        if topic not in self._partitions:
            infos = self._client().partitionsFor(topic)
            self._partitions[topic] = [
                self._topic_partition(topic, info.partition()) for info in _items(infos)
            ]
        return self._partitions[topic]

    @cached_property
    def _topic_partition(self) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm


def _by_topic(offsets: Any) -> dict[str, dict[int, int]]:
    # Read the map as one text. Asking for each entry, ten times a second, is slow if there are many.
    found: dict[str, dict[int, int]] = {}
    for topic, partition, offset in _OFFSET.findall(str(offsets.toString())):
        found.setdefault(topic, {})[int(partition)] = int(offset)
    return found


def _items(collection: Any) -> Iterator[Any]:
    """Iterate over a Java collection. Py4J's iterator ends with a Java exception that is slow to convert."""
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()
