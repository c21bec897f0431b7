"""Topics, partitions and ids are read from the texts of Kafka's Java objects, and offsets from Kafka."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import SparkSession

from spark_app.sources.kafka import KafkaSource

TOPIC, OTHER = "offsets-of.a_topic-1", "offsets-of.a_topic"


@pytest.mark.timeout(300)
def test_new_records_partitions_and_topics_are_found(spark: SparkSession, bootstrap: str) -> None:
    source, admin = KafkaSource(spark, bootstrap, "offsets"), AdminClient({"bootstrap.servers": bootstrap})
    _make(admin, TOPIC)
    assert TOPIC in source.topics()
    _send(bootstrap, TOPIC, 3)
    first = source.extents(frozenset({TOPIC}))[TOPIC]
    assert (first.beginning, first.end) == ({0: 0}, {0: 3})

    _make(admin, OTHER)
    both = source.extents(frozenset({TOPIC, OTHER}))
    assert (both[TOPIC], both[OTHER].end) == (first, {0: 0})
    assert None not in (first.topic_id, both[OTHER].topic_id)
    assert first.topic_id != both[OTHER].topic_id

    admin.create_partitions([NewPartitions(TOPIC, 2)])[TOPIC].result(30)
    _send(bootstrap, TOPIC, 2, partition=1)
    while len(source.extents(frozenset({TOPIC}))[TOPIC].end) < 2:
        source.topics()
    second = source.extents(frozenset({TOPIC}))[TOPIC]
    assert (second.beginning, second.end) == ({0: 0, 1: 0}, {0: 3, 1: 2})
    assert second.topic_id == first.topic_id

    before = time.time() * 1000
    _send(bootstrap, TOPIC, 1, partition=1)
    newest = source.newest(frozenset({TOPIC, OTHER, "offsets-of.no_topic"}))
    assert newest.keys() == {TOPIC}, "the other one has no record"
    assert before - 1 <= newest[TOPIC] <= time.time() * 1000 + 1

    absent = source.extents(frozenset({"offsets-of.no_topic"}))["offsets-of.no_topic"]
    assert (absent.beginning, absent.end, absent.topic_id) == ({}, {}, None)
    source.close()


def _make(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)


def _send(bootstrap: str, topic: str, records: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(records):
        producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(30) == 0
