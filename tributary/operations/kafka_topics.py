"""The topics in Kafka, and their end offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.naming import QUESTIONS_GROUP, LakeNames, SourceNames
from tributary.contract.table_name import TableName
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_log import ClientLog

Positions = Mapping[int, int]
"""The next offset of each partition."""

TIMEOUT_SECONDS = 10.0


def events_behind(positions: Positions, ends: Positions) -> int:
    """Count the events between the positions and the ends."""
    return sum(max(0, end - positions.get(partition, 0)) for partition, end in ends.items())


class KafkaUnreachable(TributaryError):
    """Kafka does not answer."""


class SeveralPartitions(TributaryError):
    """A topic whose messages have to be in order has more than one partition."""


def read_table_names(kafka: KafkaCluster, lake: Lake) -> tuple[TableName, ...]:
    """Return the tables that have a topic, ordered by name. A table gets one with its first row."""
    return tuple(sorted(read_table_topics(kafka, lake).values()))


def read_table_topics(kafka: KafkaCluster, lake: Lake) -> dict[str, TableName]:
    """Return the table topics that Tributary's own connectors created, with their tables."""
    sources = tuple(lake.source_names(source) for source in lake.connected_sources)
    with questions(kafka) as consumer:
        topics = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    found = {topic: _table_of(lake.names, topic, sources) for topic in topics}
    return {topic: table for topic, table in found.items() if table is not None}


@lru_cache(maxsize=10_000)
def _table_of(names: LakeNames, topic: str, sources: tuple[SourceNames, ...]) -> TableName | None:
    """Return the topic's table. Who looks at hundreds of topics again and again computes it once."""
    return names.table_of_topic(topic, sources)


def read_topic_ends(kafka: KafkaCluster, topics: Collection[str]) -> Mapping[str, Positions]:
    """Return the current end offsets of each topic. Topics that do not exist are left out."""
    with questions(kafka) as consumer:
        known = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    places = [TopicPartition(t, p) for t in topics if t in known for p in known[t].partitions]
    ends: dict[str, dict[int, int]] = {topic: {} for topic in topics if topic in known}
    with _admin(kafka) as admin:
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        answers = admin.list_offsets(dict.fromkeys(places, latest), request_timeout=TIMEOUT_SECONDS)
        for place, answer in answers.items():
            ends[place.topic][place.partition] = answer.result().offset
    return ends


@dataclass(frozen=True)
class Topic:
    """A topic as it is now. A topic that was created again has another id."""

    id: str
    ends: Positions


def read_topics(kafka: KafkaCluster, topics: Collection[str]) -> dict[str, Topic]:
    """Return the ids and ends of these topics. Topics that do not exist are left out."""
    ends = read_topic_ends(kafka, topics)
    if not ends:
        return {}
    with _admin(kafka) as admin:
        asked = admin.describe_topics(TopicCollection(list(ends)), request_timeout=TIMEOUT_SECONDS)
        # Kafka's Java client, which the Spark app uses, writes ids in the URL-safe alphabet.
        ids = {
            topic: str(answer.result().topic_id).translate(str.maketrans("+/", "-_"))
            for topic, answer in asked.items()
        }
    return {topic: Topic(ids[topic], ends[topic]) for topic in ends}


def read_notifications(kafka: KafkaCluster, topic: str, start: int) -> list[tuple[int, bytes]]:
    """Return the offsets and values of a topic of one partition, from `start` to its end.

    Raises `KafkaUnreachable`, and `SeveralPartitions`: over those, the messages have no order.
    """
    found: list[tuple[int, bytes]] = []
    # One client does it all: a small broker of Amazon MSK accepts only four logins a second.
    with questions(kafka) as consumer:
        partitions = partitions_of(consumer, topic)
        if partitions - {0}:
            raise SeveralPartitions(
                "the topic of a connector's notifications has too many partitions",
                where=f"topic {topic}",
                expected="1 partition",
                found=f"{len(partitions)} partitions",
                remedy="Create the topic again with one partition, while the connector is stopped.",
            )
        if not partitions:
            return found
        place = TopicPartition(topic, 0, start)
        low, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS, cached=False)
        consumer.assign([place])
        offset = max(start, low)
        while offset < end:
            message = consumer.poll(TIMEOUT_SECONDS)
            if message is None:
                # A part of them could look like all of them.
                raise KafkaUnreachable("Kafka sends no messages", where=f"{kafka.bootstrap}, topic {topic}")
            if message.error() is not None:
                raise KafkaException(message.error())
            offset = (message.offset() or 0) + 1
            if (value := message.value()) is not None:
                found.append((offset - 1, value))
    return found


def partitions_of(consumer: Consumer, topic: str) -> frozenset[int]:
    """Return a topic's partitions: none if there is no such topic.

    Raises KafkaException, also if the right to describe it is missing."""
    found = consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
    if found.error is not None and found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(found.error)
    return frozenset(found.partitions)


def delete_topic(kafka: KafkaCluster, topic: str) -> bool:
    """Delete a topic, and return whether there was one. Raises KafkaUnreachable."""
    with questions(kafka) as consumer:
        if topic not in consumer.list_topics(timeout=TIMEOUT_SECONDS).topics:
            return False
    with _admin(kafka) as admin:
        admin.delete_topics([topic], operation_timeout=TIMEOUT_SECONDS)[topic].result()
    return True


@contextmanager
def questions(kafka: KafkaCluster) -> Iterator[Consumer]:
    """Yield a consumer that subscribes to nothing, so its group never exists. Raises `KafkaUnreachable`."""
    options = {
        **kafka.client_config,
        "group.id": QUESTIONS_GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    log = ClientLog()
    with told_unreachable(kafka, log):
        consumer = Consumer({**options, "logger": log.logger})
        try:
            yield consumer
        except KafkaException:
            consumer.poll(0)  # This delivers what librdkafka has logged.
            raise
        finally:
            consumer.close()


@contextmanager
def told_unreachable(kafka: KafkaCluster, log: ClientLog | None = None) -> Iterator[None]:
    """Turn an error of Kafka's client into KafkaUnreachable, with what the client has logged last."""
    try:
        yield
    except KafkaException as error:
        reason = error.args[0]
        found = [reason.str() if isinstance(reason, KafkaError) else str(reason)]
        if log is not None and log.last is not None:
            found.append(log.last)
        raise KafkaUnreachable(
            "Kafka does not answer", where=kafka.bootstrap, found="; ".join(found)
        ) from error


@contextmanager
def _admin(kafka: KafkaCluster) -> Iterator[AdminClient]:
    """Yield a client that lives until all answers are there. Raises `KafkaUnreachable`."""
    log = ClientLog()
    with told_unreachable(kafka, log):
        admin = AdminClient(kafka.client_config | {"logger": log.logger})
        try:
            yield admin
        except KafkaException:
            admin.poll(0)
            raise
