"""Reads a topic's records from bronze: the Java class BronzeEvents.

What it replaces is a filter and a `select`, for which Spark copies each event's bytes twice more."""

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
    perhaps filtered, with the columns k_topic `string`, k_partition `int`, k_offset `bigint`, k_timestamp
    `bigint` (milliseconds), key `binary`, value `binary`, and, once a record has needed them, moved_to
    `binary` and moved_from `binary`.

    The columns have the names of `event`, whose types have to be: topic `string`, partition `int`, offset
    `bigint`, timestamp `timestamp`, key, value, moved_to and moved_from `binary`."""
    read = java_class(landed.sparkSession, "BronzeEvents").read(
        landed._jdf, topic, [list(wanted) for wanted in ranges], event.json()
    )
    return DataFrame(read, landed.sparkSession)
