"""The topics in Kafka, and their end offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

Positions = Mapping[int, int]
"""The next offset of each partition."""

TIMEOUT_SECONDS = 10.0


class KafkaUnreachable(TributaryError):
    """Kafka does not answer."""


def read_table_names(bootstrap: str, lake: Lake) -> tuple[TableName, ...]:
    """Return the tables that have a topic, ordered by name. A table gets one with its first row."""
    return tuple(sorted(read_table_topics(bootstrap, lake).values()))


def read_table_topics(bootstrap: str, lake: Lake) -> dict[str, TableName]:
    """Return the table topics that Tributary's own connectors created, with their tables."""
    sources = [lake.source_names(source) for source in lake.sources]
    with _questions(bootstrap) as consumer:
        topics = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    found = {topic: lake.names.table_of_topic(topic, sources) for topic in topics}
    return {topic: table for topic, table in found.items() if table is not None}


def read_topic_ends(bootstrap: str, topics: Collection[str]) -> dict[str, Positions]:
    """Return the current end offsets of each topic. Topics that do not exist are left out."""
    with _questions(bootstrap) as consumer:
        known = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        return {
            topic: {partition: _end(consumer, topic, partition) for partition in known[topic].partitions}
            for topic in topics
            if topic in known
        }


@contextmanager
def _questions(bootstrap: str) -> Iterator[Consumer]:
    """Yield a consumer that subscribes to nothing, so its group never exists. Raises `KafkaUnreachable`."""
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
