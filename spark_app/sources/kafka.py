"""Kafka as a source of events: Spark reads the records, Kafka's own client answers for the offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.event import EVENT, MOVED_FROM_HEADER, MOVED_TO_HEADER, OffsetRange, TopicExtent

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
REQUEST_TIMEOUT_MS = 30_000


@dataclass
class KafkaSource:
    """The topics of a Kafka cluster.

    `group_prefix` begins the consumer groups of Spark's readers. `client_options` are properties of Kafka
    clients (security, …), as Kafka names them."""

    spark: SparkSession
    bootstrap_servers: str
    group_prefix: str
    client_options: Mapping[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _consumer: Any = field(default=None, repr=False)

    def topics(self) -> frozenset[str]:
        with self._lock:
            return frozenset(str(topic) for topic in self._client().listTopics().keySet())

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        with self._lock:
            client = self._client()
            partitions = self._jvm.java.util.ArrayList()
            for topic in topics:
                for info in client.partitionsFor(topic):
                    partitions.add(self._jvm.org.apache.kafka.common.TopicPartition(topic, info.partition()))
            beginning = _by_topic(client.beginningOffsets(partitions))
            end = _by_topic(client.endOffsets(partitions))
        return {topic: TopicExtent(beginning.get(topic, {}), end.get(topic, {})) for topic in topics}

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        reader = self.spark.read.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self.bootstrap_servers,
                **{f"kafka.{name}": value for name, value in self.client_options.items()},
                "groupIdPrefix": self.group_prefix,
                "assign": json.dumps({topic: [r.partition for r in ranges]}),
                "startingOffsets": json.dumps({topic: {str(r.partition): r.first for r in ranges}}),
                "endingOffsets": json.dumps({topic: {str(r.partition): r.until for r in ranges}}),
                "includeHeaders": "true",
                "failOnDataLoss": "true",
            }
        )
        moved = [_header(MOVED_TO_HEADER).alias("moved_to"), _header(MOVED_FROM_HEADER).alias("moved_from")]
        return reader.load().select("*", *moved).select(*EVENT.fieldNames())

    def close(self) -> None:
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None

    def _client(self) -> Any:
        """A consumer of no group, for metadata only. It is not thread-safe, hence the lock around its use."""
        if self._consumer is None:
            properties = self._jvm.java.util.Properties()
            for name, value in {
                "bootstrap.servers": self.bootstrap_servers,
                "key.deserializer": _BYTES,
                "value.deserializer": _BYTES,
                "default.api.timeout.ms": str(REQUEST_TIMEOUT_MS),
                **self.client_options,
            }.items():
                properties.setProperty(name, value)
            self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        return self._consumer

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm


def _header(name: str) -> Column:
    return F.filter("headers", lambda header: header["key"] == name)[0]["value"]


def _by_topic(offsets: Any) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for entry in offsets.entrySet():
        partition = entry.getKey()
        found.setdefault(str(partition.topic()), {})[int(partition.partition())] = int(entry.getValue())
    return found
