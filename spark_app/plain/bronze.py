"""Read a topic's records from bronze, and its topics and offsets from the metadata of its files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType


def read_bronze_events(
    landed: DataFrame, topic: str, ranges: Iterable[tuple[int, int, int]], event: StructType
) -> DataFrame:
    is_in_a_range = F.lit(False)
    for partition, first, until in ranges:
        is_in_a_range |= (F.col("k_partition") == partition) & F.col("k_offset").between(first, until - 1)
    return landed.where((F.col("k_topic") == topic) & is_in_a_range).select(
        F.lit(topic).alias("topic"),
        F.col("k_partition").alias("partition"),
        F.col("k_offset").alias("offset"),
        F.timestamp_millis("k_timestamp").alias("timestamp"),
        "key",
        "value",
        *[
            (F.col(name) if name in landed.columns else F.lit(None).cast("binary")).alias(name)
            for name in event.names[6:]
        ],
    )


def topics_in_metadata(_spark: SparkSession, _table: str, /) -> frozenset[str] | None:
    """Return None: Spark's metadata tables need a job, too. So the caller reads the topics from the rows."""
    return None


def offsets_in_metadata(
    _spark: SparkSession, _table: str, _topics: Collection[str], /
) -> Mapping[str, Mapping[int, tuple[int, int]]]:
    """Return nothing, as `topics_in_metadata` does."""
    return {}
