"""The records in Kafka and the rows in bronze, as the tests compare them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tributary.local.pipeline import RunningPipeline
from tributary.local.postgres import CATALOG, CATALOG_ROLE
from tributary.local.s3 import REGION, s3_client

PATIENCE_SECONDS = 600.0


@dataclass(frozen=True)
class Landed:
    """One record of a table topic, byte for byte. `timestamp` is in milliseconds since 1970."""

    topic: str
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    moved_to: bytes | None
    moved_from: bytes | None

    @property
    def op(self) -> str | None:
        """Debezium's operation, or None if the record is not one of its envelopes."""
        try:
            return str(json.loads(self.value or b"")["payload"]["op"])
        except (ValueError, KeyError, TypeError):
            return None


def read_kafka(pipeline: RunningPipeline, table: str, *, at_least: int) -> list[Landed]:
    """Return the records of the table's topic, once it has this many."""
    return list(each_of_kafka(pipeline, table, at_least=at_least))


def each_of_kafka(pipeline: RunningPipeline, table: str, *, at_least: int) -> Iterator[Landed]:
    """Yield the same records as `read_kafka`, without keeping them."""
    topic = topic_of(pipeline, table)
    with _consumer(pipeline) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        wait_until(lambda: _end(consumer, topic) >= at_least, f"{at_least} records in {topic}")
        yield from _read_to(consumer, topic, 0, _end(consumer, topic))


def last_of_kafka(pipeline: RunningPipeline, table: str) -> Landed | None:
    """Return the last record of the table's topic, or None if the topic is empty."""
    topic = topic_of(pipeline, table)
    with _consumer(pipeline) as consumer:
        last = _end(consumer, topic) - 1
        if last < 0:
            return None
        consumer.assign([TopicPartition(topic, 0, last)])
        return next(_read_to(consumer, topic, last, last + 1))


def read_bronze(jvm: Any, pipeline: RunningPipeline, table: str, *, at_least: int) -> list[Landed]:
    """Return the rows that the sink has committed for the table's topic, once it has this many, by offset."""
    topic = topic_of(pipeline, table)
    rows: list[Landed] = []

    def has_landed() -> bool:
        rows[:] = sorted(_bronze_rows(jvm, pipeline, topic), key=lambda row: row.offset)
        return len(rows) >= at_least

    wait_until(has_landed, f"{at_least} rows of {topic} in bronze")
    return rows


def write_kafka(pipeline: RunningPipeline, table: str, *records: tuple[bytes | None, bytes | None]) -> None:
    """Write keys and values directly into the table's topic, as no source would."""
    producer = Producer({"bootstrap.servers": pipeline.settings.kafka_bootstrap, "log_level": 0})
    for key, value in records:
        producer.produce(topic_of(pipeline, table), value, key)
    assert producer.flush(30) == 0


def topic_of(pipeline: RunningPipeline, table: str) -> str:
    """Return the topic of a table in the first source's schema `public`."""
    return pipeline.lake.source_names(pipeline.lake.sources[0]).topic("public", table)


def wait_until(
    is_true: Callable[[], object],
    what: str,
    patience_seconds: float = PATIENCE_SECONDS,
    poll_seconds: float = 0.2,
) -> None:
    """Look again and again, but use at most half of a core for it: what is awaited needs the cores too."""
    deadline = time.monotonic() + patience_seconds
    while True:
        began = time.monotonic()
        if is_true():
            return
        looked = time.monotonic()
        assert looked < deadline, f"no {what} within {patience_seconds:.0f} s"
        time.sleep(max(poll_seconds, looked - began))


@contextmanager
def _consumer(pipeline: RunningPipeline) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": pipeline.settings.kafka_bootstrap,
            "group.id": f"test-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _end(consumer: Consumer, topic: str) -> int:
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
    except KafkaException as error:
        if error.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return 0  # The connector creates the topic with its first event.
        raise


def _read_to(consumer: Consumer, topic: str, position: int, end: int) -> Iterator[Landed]:
    while position < end:
        message = consumer.poll(10)
        assert message is not None, f"{topic} ends at {position} and not at {end}"
        assert message.error() is None, message.error()
        headers: dict[str, Any] = dict(message.headers() or [])
        offset = message.offset()
        assert offset is not None
        position = offset + 1
        yield Landed(
            topic,
            offset,
            message.timestamp()[1],
            message.key(),
            message.value(),
            headers.get("__debezium.newkey"),
            headers.get("__debezium.oldkey"),
        )


def _bronze_rows(jvm: Any, pipeline: RunningPipeline, topic: str) -> Iterator[Landed]:
    secrets = pipeline.settings.secrets
    s3 = s3_client(
        pipeline.settings.s3_endpoint,
        secrets.s3_access_key.get_secret_value(),
        secrets.s3_secret_key.get_secret_value(),
    )
    for location in _committed_files(jvm, pipeline):
        bucket, _, key = location.removeprefix("s3://").partition("/")
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        yield from _rows_of(pq.read_table(BytesIO(content)).to_pylist(), topic)


def _committed_files(jvm: Any, pipeline: RunningPipeline) -> list[str]:
    """Return the data files of the bronze table's current snapshot, without files of no commit."""
    settings, names, iceberg = pipeline.settings, pipeline.lake.names, jvm.org.apache.iceberg
    table = iceberg.catalog.TableIdentifier.parse(names.bronze_table)
    catalog = iceberg.jdbc.JdbcCatalog()
    try:
        catalog.initialize(
            names.bronze_catalog,
            {
                "uri": f"jdbc:postgresql://127.0.0.1:{settings.ports.postgres}/{CATALOG}",
                "jdbc.user": CATALOG_ROLE,
                "jdbc.password": settings.secrets.catalog.get_secret_value(),
                "jdbc.schema-version": "V1",
                "warehouse": f"s3://{names.bronze_bucket}",
                "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
                "s3.endpoint": settings.s3_endpoint,
                "s3.path-style-access": "true",
                "s3.access-key-id": settings.secrets.s3_access_key.get_secret_value(),
                "s3.secret-access-key": settings.secrets.s3_secret_key.get_secret_value(),
                "client.region": REGION,
            },
        )
        if not catalog.tableExists(table):
            return []
        tasks, files = catalog.loadTable(table).newScan().planFiles().iterator(), []
        while tasks.hasNext():
            files.append(str(tasks.next().file().location()))
        return files
    finally:
        catalog.close()


def _rows_of(rows: list[dict[str, Any]], topic: str) -> Iterator[Landed]:
    for row in rows:
        if row["k_topic"] == topic:
            yield Landed(
                topic,
                row["k_offset"],
                row["k_timestamp"],
                row["key"],
                row["value"],
                row.get("moved_to"),
                row.get("moved_from"),
            )
