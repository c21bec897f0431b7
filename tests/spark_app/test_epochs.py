"""Events that Kafka has deleted come from bronze. A recreated topic is read once a person says so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.ledger import EPOCH_SHIFT
from spark_app.ledger.topic_checks import AnotherTopic, PositionLost
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import EventSource, OffsetRange, TopicExtent, split_at
from spark_app.sources.kafka import KafkaSource
from spark_app.table.new_epoch import NoOtherTopic, open_epoch
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SentEvent, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import OpenEpoch

OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 20))
RANGES = st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 20), st.integers(1, 20))).map(
    lambda found: tuple(OffsetRange(p, first, first + length) for p, (first, length) in found.items())
)


@given(RANGES, OFFSETS)
def test_every_offset_of_a_range_is_on_its_side_of_the_border(
    ranges: tuple[OffsetRange, ...], borders: dict[int, int]
) -> None:
    before, after = split_at(ranges, borders)

    offsets = {(r.partition, offset) for r in ranges for offset in range(r.first, r.until)}
    assert _offsets(before) == {(p, offset) for p, offset in offsets if offset < borders.get(p, 0)}
    assert _offsets(after) == offsets - _offsets(before)


def test_what_kafka_has_lost_comes_from_bronze_and_only_where_the_two_meet(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(6):
        shop.insert(key, "first", None)
    shop.update(0, "second", None, body_is_unchanged=False)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, MemorySource(spark, rows[:2], "a"))
    table.apply(table.pending(_extent(table), limit=99))

    table.parts.reader.source = MemorySource(spark, rows, "a", beginning=5)
    with pytest.raises(PositionLost, match=r"first offset held is 5, expected offset 2.*bronze"):
        table.pending(_extent(table), limit=99)
    table.parts.reader.older = MemorySource(spark, rows[:4])
    with pytest.raises(PositionLost):
        table.pending(_extent(table), limit=99)
    table.parts.reader.older = MemorySource(spark, rows[:6], beginning=3)
    with pytest.raises(PositionLost, match="first offset held is 5"):
        table.pending(_extent(table), limit=99)

    table.parts.reader.older = MemorySource(spark, rows[:6])
    table.apply(table.pending(_extent(table), limit=99))
    assert _names(table) == {key: row["name"] for key, row in shop.rows.items()}
    assert table.ledger.positions == {0: 7}


def test_a_recreated_topic_blocks_its_table_until_a_new_epoch_follows_all_earlier_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(3):
        shop.insert(key, "first", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    table = _table(spark, tmp_path, MemorySource(spark, rows, "old"))
    table.apply(table.pending(_extent(table), limit=99))
    with pytest.raises(NoOtherTopic):
        open_epoch(table)

    for number in range(4):
        shop.begin()
        shop.update(0, f"new {number}", None, body_is_unchanged=False)
        shop.commit()
    anew = [event_row(event, offset) for offset, event in enumerate(shop.events[3:])]
    for shorter_or_longer in (anew[:1], anew):
        table.parts.reader.source = MemorySource(spark, shorter_or_longer, "new")
        table.forget()
        with pytest.raises(AnotherTopic) as caught:
            table.pending(_extent(table), limit=99)
        assert OpenEpoch() in caught.value.remedies

    assert open_epoch(table).positions == {}
    table.forget()
    table.apply(table.pending(_extent(table), limit=99))

    assert _names(table) == {key: row["name"] for key, row in shop.rows.items()}
    sequences = {row["id"]: row["_seq"] for row in table.hudi.read().collect()}
    assert sequences == {0: (1 << EPOCH_SHIFT) + 3, 1: 1, 2: 2}
    with pytest.raises(NoOtherTopic):
        open_epoch(table)
    with pytest.raises(PositionLost, match="Read from Kafka"):
        table.pending(TopicExtent({0: 0}, {0: 99}), limit=99)


@pytest.mark.timeout(300)
def test_a_topic_recreated_in_kafka_is_another_topic(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(3):
        shop.insert(key, "first", None)
    shop.commit()
    _make_topic(bootstrap, shop.events[:2])
    table = _table(spark, tmp_path, KafkaSource(spark, bootstrap, "epochs"), _KAFKA_TOPIC)
    table.apply(table.pending(_extent(table), limit=99))

    _make_topic(bootstrap, shop.events)
    table.source.topics()
    with pytest.raises(AnotherTopic, match=r"events up to 0:3, expected topic id .*, events up to 0:2"):
        table.pending(_extent(table), limit=99)
    open_epoch(table)
    table.apply(table.pending(_extent(table), limit=99))
    assert (_names(table), table.ledger.epoch) == ({0: "first", 1: "first", 2: "first"}, 1)


_KAFKA_TOPIC = "epochs"


def _make_topic(bootstrap: str, events: Sequence[SentEvent]) -> None:
    """Delete the topic if it exists, and create it with these events."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if _KAFKA_TOPIC in admin.list_topics(timeout=30).topics:
        admin.delete_topics([_KAFKA_TOPIC])[_KAFKA_TOPIC].result(30)
        while _KAFKA_TOPIC in admin.list_topics(timeout=30).topics:
            time.sleep(0.2)
    admin.create_topics([NewTopic(_KAFKA_TOPIC, num_partitions=1)])[_KAFKA_TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for event in events:
        producer.produce(_KAFKA_TOPIC, key=event.key, value=event.value, partition=0)
    assert producer.flush(30) == 0


def _table(spark: SparkSession, folder: Path, source: EventSource, topic: str = TOPIC) -> TableIngest:
    hudi = HudiTable(spark, str(folder / "silver"), "things", TablePolicy())
    return TableIngest("things", topic, source, hudi, str(folder / "quarantine"), TopicForm(PostgresLog()))


def _extent(table: TableIngest) -> TopicExtent:
    return table.source.extents(frozenset({table.topic}))[table.topic]


def _names(table: TableIngest) -> dict[int, str]:
    return {row["id"]: row["name"] for row in table.hudi.read().collect()}


def _offsets(ranges: tuple[OffsetRange, ...]) -> set[tuple[int, int]]:
    return {(r.partition, offset) for r in ranges for offset in range(r.first, r.until)}
