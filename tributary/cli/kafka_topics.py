"""Which topics Kafka has, and where they end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

Positions = Mapping[int, int]
"""Partition to the offset after the last one."""

TIMEOUT_SECONDS = 10.0


class KafkaUnreachable(TributaryError):
    """Kafka does not answer."""


def read_table_names(bootstrap: str, lake: Lake) -> tuple[TableName, ...]:
    """Read which tables have a topic, ordered by name. A table has one once it has had a row."""
    return tuple(sorted(read_table_topics(bootstrap, lake).values()))


def read_table_topics(bootstrap: str, lake: Lake) -> dict[str, TableName]:
    """Read the topics that Tributary's own connectors created for tables, and the table of each."""
    sources = [lake.source_names(source) for source in lake.sources]
    with _questions(bootstrap) as consumer:
        topics = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    found = {topic: lake.names.table_of_topic(topic, sources) for topic in topics}
    return {topic: table for topic, table in found.items() if table is not None}


def read_topic_ends(bootstrap: str, topics: Collection[str]) -> dict[str, Positions]:
    """Where each of the topics ends now; a topic that does not exist is left out."""
    with _questions(bootstrap) as consumer:
        known = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        return {
            topic: {partition: _end(consumer, topic, partition) for partition in known[topic].partitions}
            for topic in topics
            if topic in known
        }


@contextmanager
def _questions(bootstrap: str) -> Iterator[Consumer]:
    """A consumer that subscribes to nothing: its group never comes to be. Raises `KafkaUnreachable`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tributary-questions"})
    try:
        yield consumer
    except KafkaException as error:
        raise KafkaUnreachable("Kafka does not answer", where=bootstrap, found=str(error)) from error
    finally:
        consumer.close()


def _end(consumer: Consumer, topic: str, partition: int) -> int:
    place = TopicPartition(topic, partition)
    _, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)
    return int(end)
