"""Bronze as a source of events: the Iceberg table in which the S3 sink lands every Kafka record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from spark_app.steps.steps import steps

_READ_OPTIONS = {
    # Small splits keep cores from waiting long for a batch's last tasks: decoding 128 MB takes ten seconds.
    "split-size": str(16 << 20),
    # The number of rows that are copied together. Iceberg's default of 5,000 events is 30 MB with schemas.
    "batch-size": "256",
}

_Offsets = Mapping[int, tuple[int, int]]
"""By partition, the first and the last offset of a topic."""


@dataclass(frozen=True)
class BronzeSource:
    """The Iceberg table with the full name `table`.

    Columns: `k_topic, k_partition, k_offset, k_timestamp, key, value, moved_to, moved_from`
    (org.apache.iceberg.connect.transforms.KafkaMetadataTransform)."""

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession
    table: str

    def topics(self) -> frozenset[str]:
        """Return the names of all topics. Runs one Spark job if the metadata of some files does not say."""
        if not self._exists():
            return frozenset()
        in_metadata = steps().topics_in_metadata(self.spark, self.table)
        if in_metadata is not None:
            return in_metadata
        rows = self._landed().select("k_topic").distinct().collect()
        return frozenset(row["k_topic"] for row in rows)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        """Return the extent of each topic. Runs one Spark job if the metadata of some files does not say."""
        if not self._exists():
            return {topic: TopicExtent({}, {}) for topic in topics}
        offsets = dict(steps().offsets_in_metadata(self.spark, self.table, topics))
        offsets |= self._offsets_in_rows(topics - offsets.keys())
        return {
            topic: TopicExtent(
                beginning={partition: first for partition, (first, _) in found.items()},
                end={partition: last + 1 for partition, (_, last) in found.items()},
            )
            for topic, found in offsets.items()
        }

    def _offsets_in_rows(self, topics: frozenset[str]) -> Mapping[str, _Offsets]:
        if not topics:
            return {}
        rows = (
            self._landed()
            .where(F.col("k_topic").isin(*topics))
            .groupBy("k_topic", "k_partition")
            .agg(F.min("k_offset").alias("first"), F.max("k_offset").alias("last"))
            .collect()
        )
        found: dict[str, dict[int, tuple[int, int]]] = {topic: {} for topic in topics}
        for row in rows:
            found[row["k_topic"]][row["k_partition"]] = (row["first"], row["last"])
        return found

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        in_ranges = reduce(
            lambda a, b: a | b,
            [
                (F.col("k_partition") == r.partition)
                & (F.col("k_offset") >= r.first)
                & (F.col("k_offset") < r.until)
                for r in ranges
            ],
        )
        landed = self._landed(**_READ_OPTIONS)
        return steps().read_bronze_events(
            landed.where((F.col("k_topic") == topic) & in_ranges),
            topic,
            [(r.partition, r.first, r.until) for r in ranges],
            EVENT,
        )

    def _exists(self) -> bool:
        return bool(self.spark.catalog.tableExists(self.table))

    def _landed(self, **options: str) -> DataFrame:
        # The sink commits outside this session, and a cached snapshot would hide what it has landed since.
        self.spark.catalog.refreshTable(self.table)
        return self.spark.read.options(**options).table(self.table)
