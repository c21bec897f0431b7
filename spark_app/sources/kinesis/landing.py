"""Bronze of a stream: an Iceberg table in which every record lands before any table applies it.

A commit of this table holds the records and the places in the stream up to which they were read. So no record
is missing in bronze, and none is there twice, whatever crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
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

_CHUNK = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("first", LongType()),
        StructField("shard", StringType()),
        StructField("timestamps", ArrayType(LongType())),
        StructField("sequences", ArrayType(StringType())),
        StructField("keys", ArrayType(StringType())),
        StructField("values", ArrayType(BinaryType())),
    ]
)
"""`Chunk`, as it goes to Spark. Spark takes an array much faster from Python than as many rows."""

RECORDS_OF_ONE_TASK = 10_000
BYTES_OF_ONE_CHUNK = 1 << 20

COMMITS_BETWEEN_EXPIRIES = 100
SNAPSHOTS_KEPT = 100
"""So many commits can be undone by hand. A reader that began before them may fail and has to begin again."""


@dataclass(frozen=True)
class Landed:
    """Records of one shard, and the shard's place after them."""

    place: ShardPlace
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Chunk:
    """Records of one topic and partition, whose offsets follow each other from `first` on."""

    topic: str
    partition: int
    first: int
    shard: str
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
        """Return how far the stream was read, as the last commit says that nobody has undone."""
        if not self.spark.catalog.tableExists(self.table):
            return StreamPlaces()
        self.spark.catalog.refreshTable(self.table)
        summaries = self.spark.sql(
            f"SELECT summary['{PLACES_KEY}'] AS places FROM {self.table}.snapshots "
            f"WHERE summary['{PLACES_KEY}'] IS NOT NULL AND snapshot_id IN "
            f"(SELECT snapshot_id FROM {self.table}.history WHERE is_current_ancestor) "
            "ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        return StreamPlaces.from_json(summaries[0]["places"]) if summaries else self._places_in_rows()

    def land(self, places: StreamPlaces, landed: Iterable[Landed]) -> StreamPlaces:
        """Commit the records, and return the places after them."""
        read = tuple(landed)
        chunks = chunks_of(places, read, self.topic_of)
        after = places.with_places(each.place for each in read).with_offsets(ends_of(chunks))
        self._create()
        writer = self._rows(chunks).writeTo(self.table)
        writer.option(f"snapshot-property.{PLACES_KEY}", after.to_json())
        writer.option("fanout-enabled", "true").option("distribution-mode", "none").append()
        self.recent.add(record for chunk in chunks for record in _as_recent(chunk))
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

    def _rows(self, chunks: Sequence[Chunk]) -> DataFrame:
        """Return the records of the chunks, as `LANDED`."""
        tasks = 1 + sum(len(chunk.records) for chunk in chunks) // RECORDS_OF_ONE_TASK
        landing = self.spark.sparkContext.parallelize(map(_as_row, chunks), tasks)
        frame = self.spark.createDataFrame(landing, _CHUNK, verifySchema=False)
        of_records = F.arrays_zip("timestamps", "sequences", "keys", "values")
        records = frame.select("topic", "partition", "first", "shard", F.posexplode(of_records))
        found = {
            "k_topic": F.col("topic"),
            "k_partition": F.col("partition"),
            "k_offset": F.col("first") + F.col("pos"),
            "k_timestamp": F.col("col.timestamps"),
            "key": F.col("col.sequences").cast(BinaryType()),
            "value": F.col("col.values"),
            "stream": F.lit(self.stream),
            "shard": F.col("shard"),
            "sequence_number": F.col("col.sequences"),
            "partition_key": F.col("col.keys"),
        }
        return records.select(
            *(
                found.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
                for field in LANDED.fields
            )
        )

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


def chunks_of(places: StreamPlaces, landed: Iterable[Landed], topic_of: TopicOf) -> tuple[Chunk, ...]:
    """Give the records offsets, which continue those of the places, by topic and partition.

    A chunk has about `BYTES_OF_ONE_CHUNK`, or one record. Records that no table wants are left out."""
    found: list[Chunk] = []
    for each in landed:
        partition = each.place.partition
        for topic, records in _by_topic(each.records, topic_of).items():
            first = places.offsets.get(topic, {}).get(partition, 0)
            for part in _in_parts(records):
                found.append(Chunk(topic, partition, first, each.place.shard, part))
                first += len(part)
    return tuple(found)


def _by_topic(records: Iterable[Record], topic_of: TopicOf) -> Mapping[str, Sequence[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        topic = topic_of(record.data)
        if topic is not None:
            found.setdefault(topic, []).append(record)
    return found


def _in_parts(records: Iterable[Record]) -> Iterator[tuple[Record, ...]]:
    part: list[Record] = []
    size = 0
    for record in records:
        if part and size + len(record.data) > BYTES_OF_ONE_CHUNK:
            yield tuple(part)
            part, size = [], 0
        part.append(record)
        size += len(record.data)
    if part:
        yield tuple(part)


def ends_of(chunks: Iterable[Chunk]) -> Mapping[str, Mapping[int, int]]:
    """Return the next offsets by topic and partition."""
    ends: dict[str, dict[int, int]] = {}
    for chunk in chunks:
        ends.setdefault(chunk.topic, {})[chunk.partition] = chunk.first + len(chunk.records)
    return ends


def _as_row(chunk: Chunk) -> tuple[object, ...]:
    records = chunk.records
    return (
        *(chunk.topic, chunk.partition, chunk.first, chunk.shard),
        [record.arrived_ms for record in records],
        [record.sequence for record in records],
        [record.partition_key for record in records],
        [bytearray(record.data) for record in records],
    )


def _as_recent(chunk: Chunk) -> Iterator[LandedRecord]:
    for offset, record in enumerate(chunk.records, chunk.first):
        place = chunk.topic, chunk.partition, offset
        yield LandedRecord(place, record.arrived_ms, record.sequence.encode(), record.data)
