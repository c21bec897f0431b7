"""Bronze of a stream: an Iceberg table in which every record lands before any table applies it.

A commit of this table holds the records and the places in the stream up to which they were read. So no record
is missing in bronze, and none is there twice, whatever crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark_app.sources.kinesis.places import ShardPlace, StreamPlaces
from spark_app.sources.kinesis.recently_landed import LandedRecord, RecentlyLanded
from spark_app.sources.kinesis.stream import Record

LANDED = StructType(
    [
        StructField("k_topic", StringType(), nullable=False),
        StructField("k_partition", IntegerType(), nullable=False),
        StructField("k_offset", LongType(), nullable=False),
        StructField("k_timestamp", LongType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("moved_to", BinaryType()),
        StructField("moved_from", BinaryType()),
        StructField("stream", StringType()),
        StructField("shard", StringType()),
        StructField("sequence_number", StringType()),
        StructField("partition_key", StringType()),
    ]
)
"""The columns of bronze's other events (`sources.bronze`), and where Kinesis had the record.

`key` is the sequence number, as text. `k_timestamp` is when Kinesis got the record, in milliseconds."""

PLACES_KEY = "tributary.places"
"""The key in a snapshot's summary for `StreamPlaces`."""

RECORDS_OF_ONE_TASK = 10_000

COMMITS_BETWEEN_EXPIRIES = 100
SNAPSHOTS_KEPT = 100
"""So many commits can be undone by hand. A reader that began before them may fail and has to begin again."""


@dataclass(frozen=True)
class Landed:
    """Records of one shard, and the shard's place after them."""

    place: ShardPlace
    records: tuple[Record, ...]


TopicOf = Callable[[bytes], str | None]
"""Returns the topic that a record's bytes belong to; None: no table of the lake wants it."""


@dataclass
class Landing:
    """The Iceberg table with the full name `table`, for one stream. Nobody else may write to it.

    recent  holds the last records that have landed"""

    spark: SparkSession
    table: str
    stream: str
    topic_of: TopicOf
    recent: RecentlyLanded = field(default_factory=RecentlyLanded)
    _commits: int = field(default=0, init=False)

    def read_places(self) -> StreamPlaces:
        """Return how far the stream was read, as the last commit says that has records."""
        if not self.spark.catalog.tableExists(self.table):
            return StreamPlaces()
        self.spark.catalog.refreshTable(self.table)
        summaries = self.spark.sql(
            f"SELECT summary['{PLACES_KEY}'] AS places FROM {self.table}.snapshots "
            f"WHERE summary['{PLACES_KEY}'] IS NOT NULL ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        return StreamPlaces.from_json(summaries[0]["places"]) if summaries else self._places_in_rows()

    def land(self, places: StreamPlaces, landed: Iterable[Landed]) -> StreamPlaces:
        """Commit the records, and return the places after them."""
        read = tuple(landed)
        offsets, rows = numbered(places, read, self.stream, self.topic_of)
        after = places.with_places(each.place for each in read).with_offsets(offsets)
        self._create()
        tasks = 1 + len(rows) // RECORDS_OF_ONE_TASK
        landing = self.spark.sparkContext.parallelize(rows, tasks)
        frame = self.spark.createDataFrame(landing, LANDED, verifySchema=False)
        writer = frame.writeTo(self.table).option(f"snapshot-property.{PLACES_KEY}", after.to_json())
        writer.option("fanout-enabled", "true").option("distribution-mode", "none").append()
        self.recent.add(_as_recent(rows))
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_EXPIRIES == 0:
            self.expire_snapshots()
        return after

    def expire_snapshots(self) -> None:
        """Forget all snapshots but the last ones. All records stay.

        Otherwise each commit would write a longer list of snapshots than the one before."""
        jvm: Any = self.spark._jvm
        session = self.spark._jsparkSession
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, self.table)
        now_ms = table.currentSnapshot().timestampMillis() + 1
        table.expireSnapshots().expireOlderThan(now_ms).retainLast(SNAPSHOTS_KEPT).commit()

    def _create(self) -> None:
        if self.spark.catalog.tableExists(self.table):
            return
        namespace = self.table.rpartition(".")[0]
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in LANDED.fields)
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.table} ({columns}) USING iceberg "
            # A file with records of one topic and partition tells its offsets by its statistics alone.
            "PARTITIONED BY (k_topic, k_partition) "
            "TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd', "
            # Each file that is open has a buffer of this size, and each table has a file.
            "'write.parquet.page-size-bytes' = '65536', "
            "'write.metadata.delete-after-commit.enabled' = 'true', "
            "'write.metadata.previous-versions-max' = '20')"
        )

    def _places_in_rows(self) -> StreamPlaces:
        """Return the places that the records themselves show, if no snapshot says them any more.

        Reads all records' places once. A closed shard then counts as open until it is read once more."""
        rows = self.spark.sql(
            "SELECT k_topic, k_partition, shard, max(k_offset) AS last, "
            "max(struct(length(sequence_number) AS digits, sequence_number)) AS sequence, "
            f"max(k_timestamp) AS until FROM {self.table} GROUP BY k_topic, k_partition, shard"
        ).collect()
        places: dict[int, ShardPlace] = {}
        offsets: dict[str, dict[int, int]] = {}
        for row in sorted(rows, key=lambda row: tuple(row["sequence"])):
            partition = row["k_partition"]
            offsets.setdefault(row["k_topic"], {})[partition] = row["last"] + 1
            sequence = row["sequence"]["sequence_number"]
            places[partition] = ShardPlace(partition, row["shard"], sequence, until_ms=row["until"])
        return StreamPlaces(
            shards=tuple(places[partition] for partition in sorted(places)),
            offsets=offsets,
            next_partition=max(places, default=-1) + 1,
        )


def _as_recent(rows: Iterable[tuple[Any, ...]]) -> Iterator[LandedRecord]:
    for topic, partition, offset, arrived_ms, key, value, *_ in rows:
        yield LandedRecord((topic, partition, offset), arrived_ms, bytes(key), bytes(value))


def numbered(
    places: StreamPlaces, landed: Iterable[Landed], stream: str, topic_of: TopicOf
) -> tuple[Mapping[str, Mapping[int, int]], list[tuple[object, ...]]]:
    """Return the next offsets by topic and partition, and the rows (`LANDED`) grouped by these."""
    ends: dict[str, dict[int, int]] = {}
    rows: list[tuple[object, ...]] = []
    for each in landed:
        partition = each.place.partition
        of_topics = [(topic_of(record.data), record) for record in each.records]
        wanted = [(topic, record) for topic, record in of_topics if topic is not None]
        for topic, records in groupby(sorted(wanted, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
            first = places.offsets.get(topic, {}).get(partition, 0)
            offset = first
            for offset, (_, record) in enumerate(records, first):
                sequence = bytearray(record.sequence, "ascii")
                rows.append(
                    (
                        *(topic, partition, offset, record.arrived_ms, sequence, bytearray(record.data)),
                        *(None, None, stream, each.place.shard, record.sequence, record.partition_key),
                    )
                )
            ends.setdefault(topic, {})[partition] = offset + 1
    return ends, rows
