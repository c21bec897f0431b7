"""Reads records of Kafka: the Java class KafkaEvents, over Spark's own reader of Kafka.

What it replaces is Spark's data source `kafka`, which asks an admin client of its own for the topic's
partitions and makes a Java object of each record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_app.jvm.java_classes import java_class


def read_kafka_events(
    spark: SparkSession,
    consumer: Mapping[str, str],
    topic: str,
    ranges: Iterable[tuple[int, int, int]],
    tasks: int,
    headers: Sequence[str],
    event: StructType,
) -> DataFrame:
    """Return the records of some offsets of a topic, in no order. No Spark job.

    `ranges` are (partition, first offset, offset after the last). `consumer` are the properties of a consumer
    of bytes, as Kafka names them. At least so many tasks read the records, where there are that many.

    The columns have the names of `event`, whose types have to be: topic `string`, partition `int`, offset
    `bigint`, timestamp `timestamp`, key `binary`, value `binary`, then a `binary` for each of the headers,
    the last one of that name, null where a record has none. A task fails where the topic does not hold an
    offset any more."""
    taken = list(ranges)
    read = java_class(spark, "KafkaEvents").read(
        spark._jsparkSession,
        json.dumps(dict(consumer)),
        json.dumps({topic: {str(partition): first for partition, first, _ in taken}}),
        json.dumps({topic: {str(partition): until for partition, _, until in taken}}),
        tasks,
        list(headers),
        event.json(),
    )
    return DataFrame(read, spark)
