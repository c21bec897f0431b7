"""Read Kafka records with the Java class KafkaEvents, which uses Spark's own Kafka reader.

It replaces Spark's data source `kafka`. That data source asks its own admin client for the topic's partitions
and creates a Java object for each record."""

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
    """Return the records at some offsets of a topic, in no order. No Spark job.

    `ranges` are (partition, first offset, offset after the last). `consumer` are the properties of a consumer
    of bytes, with Kafka's names. At least `tasks` tasks read the records, if there are that many records.

    The result has the columns of `event`, whose types must be: topic `string`, partition `int`, offset
    `bigint`, timestamp `timestamp`, key `binary`, value `binary`, then a `binary` for each of the headers.
    That is the last header of the name, null if a record has none. A task fails if the topic no longer holds
    an offset."""
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
