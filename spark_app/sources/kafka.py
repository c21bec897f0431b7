"""Read events from Kafka: Spark reads the records, and Kafka's own client looks up the offsets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark_app.sources.event import (
    EVENT,
    EVENTS_OF_ONE_TASK,
    MOVED_FROM_HEADER,
    MOVED_TO_HEADER,
    OffsetRange,
    TopicExtent,
)
from spark_app.sources.header_ids import ID_HEADERS, WITH_IDS, framed_by_headers
from spark_app.steps.steps import steps

_NAME = "[A-Za-z0-9._-]+"
"""Topic names have no other characters (org.apache.kafka.common.internals.Topic)."""
_OFFSET = re.compile(rf"({_NAME})-([0-9]+)=([0-9]+)")
"""An entry in the text of a Java map from TopicPartition to Long."""
_TIME = re.compile(rf"({_NAME})-([0-9]+)=ListOffsetsResultInfo\(offset=[0-9]+, timestamp=([0-9]+),")
"""An entry in the text of a Java map from TopicPartition to ListOffsetsResultInfo, if there is a record."""
_PARTITION = re.compile(rf"Partition\(topic = ({_NAME}), partition = ([0-9]+),")
"""The beginning of a PartitionInfo's text."""
_TOPIC_ID = re.compile(rf"\(name=({_NAME}), topicId=([^,]+),")
"""The beginning of a TopicListing's text."""

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's text of the id that stands for none (org.apache.kafka.common.Uuid.ZERO_UUID)."""
_MOST_JAVA_LISTS = 64

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


@dataclass(frozen=True)
class _Topics:
    """The topics of a cluster. `ids` lacks those of brokers that have no topic ids."""

    partitions: Mapping[str, frozenset[int]]
    ids: Mapping[str, str]

    @classmethod
    def of_texts(cls, listings: str, partitions: str) -> _Topics:
        """Read the texts of a list of TopicListings and of lists of PartitionInfos.

        One text costs one call of the JVM. Going through the objects costs several calls for each."""
        found: dict[str, set[int]] = {}
        for topic, partition in _PARTITION.findall(partitions):
            found.setdefault(topic, set()).add(int(partition))
        ids = {topic: topic_id for topic, topic_id in _TOPIC_ID.findall(listings) if topic_id != _NO_ID}
        return cls({topic: frozenset(numbers) for topic, numbers in found.items()}, ids)


@dataclass
class KafkaSource:
    """The topics of a Kafka cluster.

    group_prefix    the prefix of the consumer groups of Spark's readers
    client_options  properties of the Kafka clients (security, …), with Kafka's names
    id_prefixes     of topics whose records may name their schemas in headers
    """

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession
    bootstrap_servers: str
    group_prefix: str
    client_options: Mapping[str, str] = field(default_factory=dict)
    id_prefixes: tuple[str, ...] = ()
    _lock: Lock = field(default_factory=Lock, repr=False)
    _consumer: Any = field(default=None, repr=False)
    _admin: Any = field(default=None, repr=False)
    _found: _Topics | None = field(default=None, repr=False)
    _beginning: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)
    _java_lists: dict[frozenset[str], Any] = field(default_factory=dict, repr=False)

    def topics(self) -> frozenset[str]:
        with self._lock:
            self._beginning.clear()
            return frozenset(self._look_up().partitions)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        """Return the extents of the partitions that were known at the last call of `topics`.

        Only the ends are asked for each time. The first offsets and the ids of the topics come from the
        last call of `topics`, or from the first time that a topic was asked for after it."""
        with self._lock:
            found = self._known(topics)
            client = self._client()
            end = _by_topic(client.endOffsets(self._java_list(found, topics)))
            if unknown := frozenset(topics - self._beginning.keys()):
                first = _by_topic(client.beginningOffsets(self._java_list(found, unknown)))
                self._beginning |= {topic: first.get(topic, {}) for topic in unknown}
            beginning = self._beginning
        return {
            topic: TopicExtent(beginning[topic], end.get(topic, {}), found.ids.get(topic)) for topic in topics
        }

    def newest(self, topics: frozenset[str]) -> Mapping[str, int]:
        """Return the largest timestamp in each topic (KIP-734), without reading a record."""
        with self._lock:
            found = self._known(topics)
            specs = self._jvm.java.util.HashMap()
            spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.maxTimestamp()
            for topic in topics & found.partitions.keys():
                for partition in found.partitions[topic]:
                    specs.put(self._topic_partition(topic, partition), spec)
            times = str(self._admin.listOffsets(specs).all().get().toString())
        newest: dict[str, int] = {}
        for topic, _, time in _TIME.findall(times):
            newest[topic] = max(newest.get(topic, 0), int(time))
        return newest

    def create(self, topic: str) -> None:
        """Create a topic with the cluster's own number of partitions and replicas, if there is none."""
        if topic in self.topics():
            return
        empty = self._jvm.java.util.Optional.empty
        new = self._jvm.org.apache.kafka.clients.admin.NewTopic(topic, empty(), empty())
        wanted = self._jvm.java.util.ArrayList()
        wanted.add(new)
        with self._lock:
            self._admin.createTopics(wanted).all().get()

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        has_ids = topic.startswith(self.id_prefixes)
        events = steps().read_kafka_events(
            self.spark,
            self._reader_properties(topic),
            topic,
            [(r.partition, r.first, r.until) for r in ranges],
            # Otherwise, one task would read and decode a topic of one partition.
            self._tasks(sum(r.length for r in ranges)),
            (MOVED_TO_HEADER, MOVED_FROM_HEADER, *(ID_HEADERS.values() if has_ids else ())),
            WITH_IDS if has_ids else EVENT,
        )
        return framed_by_headers(events) if has_ids else events

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

    def _known(self, topics: frozenset[str]) -> _Topics:
        """Return what the last look has found, or look again if it lacks one of the topics."""
        if self._found is None or not topics <= self._found.partitions.keys():
            return self._look_up()
        return self._found

    def _look_up(self) -> _Topics:
        """Ask Kafka for its topics, their partitions and their ids (KIP-516), in two requests."""
        if self._admin is None:
            admin = self._jvm.org.apache.kafka.clients.admin.AdminClient
            self._admin = admin.create(self._java_properties({}))
        listings = str(self._admin.listTopics().listings().get().toString())
        partitions = str(self._client().listTopics().toString())
        found = _Topics.of_texts(listings, partitions)
        if found != self._found:
            self._found = found
            self._java_lists.clear()
            self._beginning.clear()
        return found

    def _java_list(self, found: _Topics, topics: frozenset[str]) -> Any:
        """Return the topics' partitions as a Java list, and keep it. To make one, each is sent to the JVM."""
        if topics not in self._java_lists:
            if len(self._java_lists) >= _MOST_JAVA_LISTS:
                self._java_lists.clear()
            partitions = self._jvm.java.util.ArrayList()
            for topic in topics:
                for partition in found.partitions.get(topic, ()):
                    partitions.add(self._topic_partition(topic, partition))
            self._java_lists[topics] = partitions
        return self._java_lists[topics]

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
