"""Read Kafka records with Spark's data source `kafka`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

_SET_BY_SPARK = frozenset(
    {"key.deserializer", "value.deserializer", "auto.offset.reset", "enable.auto.commit"}
)
"""The consumer's properties that the data source sets, and refuses to take."""


def read_kafka_events(
    spark: SparkSession,
    consumer: Mapping[str, str],
    topic: str,
    ranges: Iterable[tuple[int, int, int]],
    tasks: int,
    headers: Sequence[str],
    event: StructType,
) -> DataFrame:
    taken = list(ranges)
    options = {f"kafka.{name}": value for name, value in consumer.items() if name not in _SET_BY_SPARK}
    records = (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps({topic: [partition for partition, _, _ in taken]}))
        .option("startingOffsets", json.dumps({topic: {str(p): first for p, first, _ in taken}}))
        .option("endingOffsets", json.dumps({topic: {str(p): until for p, _, until in taken}}))
        .option("minPartitions", str(tasks))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "true")
        .load()
    )
    of_record = [F.col(name) for name in ("topic", "partition", "offset", "timestamp", "key", "value")]
    return records.select(*of_record, *map(_last_header, headers)).toDF(*event.names)


def _last_header(name: str) -> Column:
    of_name = F.filter("headers", lambda header: header["key"] == name)
    return F.try_element_at(of_name, F.lit(-1))["value"]
