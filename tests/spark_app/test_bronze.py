"""Bronze knows and returns the events of a topic, however its files are laid out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_app.sources.bronze import BronzeSource
from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from tests.parameters import first_then_long
from tests.spark_app.iceberg_catalog import iceberg_catalog

MOMENT_MS = 1_790_000_000_123
COLUMNS = (
    "k_topic string, k_partition int, k_offset bigint, k_timestamp bigint, key binary, value binary, "
    "moved_to binary, moved_from binary"
)
LONG_NAME = "shop.public.a_name_of_which_iceberg_keeps_only_the_beginning"
TOPICS = ("shop.public.orders", f"{LONG_NAME}_1", f"{LONG_NAME}_2")
FILES: Sequence[Sequence[tuple[str, int, int]]] = (
    [(TOPICS[0], 0, offset) for offset in range(5, 9)],
    [(TOPICS[1], 1, offset) for offset in range(3)],
    [(TOPICS[0], 0, offset) for offset in range(9, 12)],
    [(TOPICS[2], 0, 7)],
    [(TOPICS[0], 3, offset) for offset in range(2**40, 2**40 + 2)],
)
"""Each commit's records (topic, partition, offset), which land in separate files."""

EXTENTS = {
    TOPICS[0]: TopicExtent({0: 5, 3: 2**40}, {0: 12, 3: 2**40 + 2}),
    TOPICS[1]: TopicExtent({1: 0}, {1: 3}),
    TOPICS[2]: TopicExtent({0: 7}, {0: 8}),
    "shop.public.unknown": TopicExtent({}, {}),
}


def _record(partition: int, offset: int) -> tuple[object, ...]:
    """Return the landed record: time, key, value and both headers. Some of them are null, some are long."""
    moment = datetime.fromtimestamp(MOMENT_MS / 1000, UTC).replace(tzinfo=None)
    key = None if offset % 3 == 0 else bytearray(f"key {partition}", "ascii")
    value = None if offset % 4 == 0 else bytearray(b"\0\xff" * offset if offset < 1_000 else b"")
    moved = bytearray(b"moved") if offset % 2 else None
    return moment, key, value, moved, moved


@dataclass(frozen=True)
class Bronze:
    """A bronze whose `table` does not exist yet."""

    spark: SparkSession
    table: str

    @property
    def source(self) -> BronzeSource:
        return BronzeSource(self.spark, self.table)

    def create(
        self,
        partitioned: str = "PARTITIONED BY (k_topic)",
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        pairs = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        told = f"TBLPROPERTIES ({pairs})" if pairs else ""
        self.spark.sql(f"CREATE TABLE {self.table} ({COLUMNS}) USING iceberg {partitioned} {told}")

    def land(self, records: Sequence[tuple[str, int, int]]) -> None:
        rows = [(*place, MOMENT_MS, *_record(*place[1:])[1:]) for place in records]
        self.spark.createDataFrame(rows, COLUMNS).coalesce(1).writeTo(self.table).append()

    def land_all(self) -> None:
        for records in FILES:
            self.land(records)

    def jobs_of(self, work: Callable[[], object]) -> int:
        context, group = self.spark.sparkContext, uuid.uuid4().hex
        context.setJobGroup(group, group)
        try:
            work()
        finally:
            context._jsc.clearJobGroup()
        return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.fixture
def bronze(spark: SparkSession, tmp_path: Path) -> Iterator[Bronze]:
    catalog = iceberg_catalog(spark, tmp_path)
    yield Bronze(spark, f"{catalog}.lake.records")
    spark.sql(f"DROP TABLE IF EXISTS {catalog}.lake.records")


def test_an_empty_bronze_has_no_topics_and_no_offsets(bronze: Bronze) -> None:
    assert bronze.source.topics() == frozenset()
    assert bronze.source.extents(frozenset({"a"})) == {"a": TopicExtent({}, {})}


def test_the_offsets_in_the_sinks_files_are_found_without_a_job(bronze: Bronze) -> None:
    bronze.create()
    bronze.land_all()
    assert bronze.source.topics() == frozenset(TOPICS)
    assert bronze.source.extents(frozenset(EXTENTS)) == EXTENTS
    assert bronze.jobs_of(bronze.source.topics) == 0
    assert bronze.jobs_of(lambda: bronze.source.extents(frozenset(EXTENTS))) == 0


def test_events_that_land_later_are_found_at_the_next_look(bronze: Bronze) -> None:
    bronze.create()
    bronze.land(FILES[0])
    source = bronze.source
    assert source.topics() == {TOPICS[0]}
    assert source.extents(frozenset({TOPICS[0]}))[TOPICS[0]].end == {0: 9}
    bronze.land(FILES[1])
    bronze.land(FILES[2])
    assert source.topics() == {TOPICS[0], TOPICS[1]}
    assert source.extents(frozenset({TOPICS[0]}))[TOPICS[0]].end == {0: 12}


def test_the_rows_are_queried_if_a_file_has_several_partitions(bronze: Bronze) -> None:
    bronze.create()
    bronze.land_all()
    bronze.land([(TOPICS[1], 1, 3), (TOPICS[1], 0, 20)])
    expected = EXTENTS | {TOPICS[1]: TopicExtent({0: 20, 1: 0}, {0: 21, 1: 4})}
    assert bronze.source.extents(frozenset(EXTENTS)) == expected
    assert bronze.jobs_of(lambda: bronze.source.extents(frozenset(EXTENTS))) > 0


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_deleted_events_are_not_found(bronze: Bronze, mode: str) -> None:
    bronze.create(properties={"format-version": "2", "write.delete.mode": mode})
    bronze.land_all()
    bronze.spark.sql(
        f"DELETE FROM {bronze.table} WHERE k_topic = '{TOPICS[0]}' AND k_partition = 0 AND k_offset < 7"
    )
    expected = EXTENTS | {TOPICS[0]: TopicExtent({0: 7, 3: 2**40}, {0: 12, 3: 2**40 + 2})}
    assert bronze.source.extents(frozenset(EXTENTS)) == expected
    bronze.spark.sql(f"DELETE FROM {bronze.table} WHERE k_offset = 7 AND k_topic = '{TOPICS[2]}'")
    assert bronze.source.topics() == {TOPICS[0], TOPICS[1]}


@pytest.mark.parametrize(
    ("partitioned", "properties"),
    [
        ("", {}),
        ("PARTITIONED BY (truncate(4, k_topic))", {}),
        ("PARTITIONED BY (bucket(2, k_offset), k_topic)", {}),
        ("PARTITIONED BY (k_topic)", {"write.metadata.metrics.default": "none"}),
    ],
    ids=["no partitions", "the beginning of a topic", "other partitions beside", "no statistics"],
)
def test_offsets_are_found_in_any_layout(
    bronze: Bronze, partitioned: str, properties: dict[str, str]
) -> None:
    bronze.create(partitioned, properties)
    bronze.land_all()
    assert bronze.source.topics() == frozenset(TOPICS)
    assert bronze.source.extents(frozenset(EXTENTS)) == EXTENTS


def test_the_layout_can_change_between_files(bronze: Bronze) -> None:
    bronze.create("")
    bronze.land(FILES[0])
    bronze.land(FILES[1])
    jvm = bronze.spark._jvm
    assert jvm is not None
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        bronze.spark._jsparkSession, bronze.table
    )
    table.updateSpec().addField("k_topic").commit()
    for records in FILES[2:]:
        bronze.land(records)
    assert bronze.source.topics() == frozenset(TOPICS)
    assert bronze.source.extents(frozenset(EXTENTS)) == EXTENTS


RANGES = (OffsetRange(0, 7, 10), OffsetRange(3, 2**40 + 1, 2**40 + 9))


@pytest.mark.parametrize(
    "properties",
    [{}, {"read.parquet.vectorization.enabled": "false"}, {"write.format.default": "avro"}],
    ids=["by columns", "by rows", "avro"],
)
@pytest.mark.parametrize(
    "partitioned", first_then_long(["PARTITIONED BY (k_topic)", ""]), ids=["by topic", "no partitions"]
)
@pytest.mark.usefixtures("each_way_if_long")
def test_exactly_the_events_of_the_ranges_are_read(
    bronze: Bronze, partitioned: str, properties: dict[str, str]
) -> None:
    bronze.create(partitioned, properties)
    bronze.land_all()
    events = bronze.source.read(TOPICS[0], RANGES)
    assert events.schema.simpleString() == EVENT.simpleString()
    places = [(0, 7), (0, 8), (0, 9), (3, 2**40 + 1)]
    found = sorted(map(tuple, events.collect()))
    assert found == [(TOPICS[0], *place, *_record(*place)) for place in places]
    assert bronze.source.read(TOPICS[2], RANGES).collect()[0]["offset"] == 7


def test_deleted_events_are_not_read(bronze: Bronze) -> None:
    bronze.create(properties={"format-version": "2", "write.delete.mode": "merge-on-read"})
    bronze.land_all()
    bronze.spark.sql(f"DELETE FROM {bronze.table} WHERE k_offset = 8")
    assert _offsets(bronze.source.read(TOPICS[0], RANGES)) == [7, 9, 2**40 + 1]


def test_the_columns_of_headers_may_be_missing_and_columns_may_come_in_any_order(bronze: Bronze) -> None:
    columns = (
        "value binary, k_offset bigint, k_timestamp bigint, k_topic string, key binary, k_partition bigint"
    )
    bronze.spark.sql(f"CREATE TABLE {bronze.table} ({columns}) USING iceberg PARTITIONED BY (k_topic)")
    bronze.spark.createDataFrame([(b"value", 7, None, "a", None, 0)], columns).writeTo(bronze.table).append()
    assert bronze.source.extents(frozenset("a")) == {"a": TopicExtent({0: 7}, {0: 8})}
    (found,) = bronze.source.read("a", (OffsetRange(0, 0, 10),)).collect()
    assert tuple(found) == ("a", 0, 7, None, None, b"value", None, None)


def _offsets(events: DataFrame) -> list[int]:
    return sorted(row["offset"] for row in events.select("offset").collect())
