"""Read a topic's records from bronze with the Java class BronzeEvents.

It replaces a filter and a `select`, for which Spark copies each event's bytes two more times."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from spark_app.jvm.java_classes import java_class


def read_bronze_events(
    landed: DataFrame, topic: str, ranges: Iterable[tuple[int, int, int]], event: StructType
) -> DataFrame:
    """Return the landed records of the topic that are in the ranges, in no order. No Spark job.

    `ranges` are (partition, first offset, offset after the last). `landed` is a scan of an Iceberg table,
    which may be filtered. Its columns are k_topic `string`, k_partition `int`, k_offset `bigint`, k_timestamp
    `bigint` (milliseconds), key `binary` and value `binary`. The columns moved_to `binary` and moved_from
    `binary` exist as soon as a record has needed them.

    The result has the columns of `event`, whose types must be: topic `string`, partition `int`, offset
    `bigint`, timestamp `timestamp`, key, value, moved_to and moved_from `binary`."""
    read = java_class(landed.sparkSession, "BronzeEvents").read(
        landed._jdf, topic, [list(wanted) for wanted in ranges], event.json()
    )
    return DataFrame(read, landed.sparkSession)
