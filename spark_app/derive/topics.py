"""Topics of JSON as streams of rows, with the columns that the lake file names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tributary.contract.column_types import ColumnType
from tributary.contract.derived import KAFKA_COLUMNS, Topic

EVENTS_OF_A_BATCH = 500_000
_DEFAULT_DECIMAL = (38, 9)
_UNREADABLE = "_unreadable"
_TYPES: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "smallint": ShortType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "real": FloatType(),
    "double precision": DoubleType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp with time zone": TimestampType(),
}


def event_type(topic: Topic) -> StructType:
    """Return the columns of a topic's events as Spark reads them."""
    return StructType([StructField(name, _type(column)) for name, column in topic.columns])


def read_stream(
    spark: SparkSession,
    name: str,
    topic: Topic,
    kafka: Mapping[str, str],
    group_prefix: str,
    events: int = EVENTS_OF_A_BATCH,
) -> DataFrame:
    """Return the topic as a stream that starts at its beginning. `name` is the one of its section.

    `kafka`: the options of Spark's source, whose consumer groups have the prefix. A batch has at most this
    many events."""
    records = (
        spark.readStream.format("kafka")
        .options(**kafka)
        .option("groupIdPrefix", group_prefix)
        .option("subscribe", topic.topic or name)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(events))
        .load()
    )
    return with_watermark(rows_of(records, name, topic), topic)


def rows_of(records: DataFrame, name: str, topic: Topic) -> DataFrame:
    """Return the rows of Kafka's records. Observes how many events there are and how many are unreadable."""
    fields = event_type(topic)
    schema = StructType([*fields.fields, StructField(_UNREADABLE, StringType())])
    value = F.from_json(F.col("value").cast("string"), schema, {"columnNameOfCorruptRecord": _UNREADABLE})
    parsed = records.where(F.col("value").isNotNull()).select(
        value.alias("event"),
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.col("timestamp").alias("kafka_timestamp"),
    )
    is_unreadable = F.col("event").isNull() | F.col(f"event.{_UNREADABLE}").isNotNull()
    observed = parsed.observe(
        observation_of(name),
        F.count(F.lit(1)).alias("events"),
        F.sum(is_unreadable.cast("long")).alias("unreadable"),
    )
    return observed.where(~is_unreadable).select(
        *(F.col(f"event.`{field.name}`").alias(field.name) for field in fields.fields), *KAFKA_COLUMNS
    )


def with_watermark(rows: DataFrame, topic: Topic) -> DataFrame:
    """Return the rows with the topic's watermark and without repeated events."""
    if topic.event_time is not None and topic.watermark is not None:
        rows = rows.withWatermark(topic.event_time, f"{int(topic.watermark.total_seconds())} seconds")
        return rows if topic.unique is None else rows.dropDuplicatesWithinWatermark(list(topic.unique))
    return rows if topic.unique is None else rows.dropDuplicates(list(topic.unique))


def observation_of(name: str) -> str:
    """Return the name under which Spark reports the counts of a topic's events."""
    return f"events_{name}"


def _type(column: ColumnType) -> DataType:
    if column.name == "numeric":
        precision, scale = (*column.arguments, 0)[:2] if column.arguments else _DEFAULT_DECIMAL
        return DecimalType(precision, scale)
    return _TYPES.get(column.name, StringType())
