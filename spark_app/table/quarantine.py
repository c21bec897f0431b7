"""The quarantine: unchanged events that could not be applied, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from spark_app.sources.event import EVENT, OffsetRange

QUARANTINED = StructType(
    [
        *EVENT.fields,
        StructField("reason", StringType(), nullable=False),
        StructField("message", StringType(), nullable=False),
        StructField("quarantined_at", TimestampType(), nullable=False),
    ]
)
"""An `EVENT`, plus the code and the text of the reason why it could not be applied (`wire.reasons.REASONS`).
"""


def quarantined(events: DataFrame, bad: DataFrame, unfilled: DataFrame | None = None) -> DataFrame:
    """Return the events that `bad` lists, as `QUARANTINED`.

    Columns of `bad`: `topic, partition, offset, reason, message`. With `unfilled` (`wire.decode.unfilled`),
    the message names the columns for which a JSON event has a value, and its row has none."""
    why = bad.select(*_POSITION, "reason", "message")
    message: Column = F.col("message")
    if unfilled is not None:
        why = why.join(F.broadcast(unfilled), _POSITION, "left")
        values = F.from_json(_row_of(F.col("value").cast(StringType())), "map<string,string>")
        unread = F.filter("unfilled", lambda name: F.element_at(values, name).isNotNull())
        named = F.concat("message", F.lit(" In "), F.array_join(unread, ", "), F.lit("."))
        message = F.when(F.size(unread) > 0, named).otherwise(message)
    return events.join(F.broadcast(why), _POSITION, "inner").select(
        *EVENT.fieldNames(), "reason", message.alias("message"), F.current_timestamp().alias("quarantined_at")
    )


_POSITION = ["topic", "partition", "offset"]


def _row_of(text: Column) -> Column:
    """Return the JSON of the row in an event's JSON: in an envelope, or the whole of an unwrapped row."""

    def at(path: str) -> Column:
        return F.get_json_object(text, path)

    def is_unwrapped(path: str) -> Column:
        return F.coalesce(at(f"{path}.__op"), at(f"{path}.__deleted")).isNotNull()

    return (
        F.when(is_unwrapped("$.payload"), at("$.payload"))
        .when(is_unwrapped("$"), text)
        .otherwise(F.coalesce(at("$.payload.after"), at("$.after")))
    )


def write_quarantine(rows: DataFrame, table_path: str, epoch: int, ranges: tuple[OffsetRange, ...]) -> str:
    """Write the `QUARANTINED` rows of one batch, and return the folder.

    The folder is named after the batch's offsets, so that a repeated batch replaces its own folder."""
    batch = "-".join(f"p{r.partition}-{r.first}-{r.until}" for r in ranges)
    folder = f"{table_path}/e{epoch}-{batch}"
    rows.coalesce(1).write.mode("overwrite").parquet(folder)
    return folder


def read_quarantine(
    spark: SparkSession, table_path: str, epoch: int
) -> tuple[DataFrame, tuple[str, ...]] | None:
    """Return the `QUARANTINED` rows of a table, each once, and their folders; None if there are none.

    `epoch` is the epoch of the table's topic."""
    folders = tuple(f for f in _folders(spark, table_path) if f.rpartition("/")[2].startswith(f"e{epoch}-"))
    if not folders:
        return None
    rows = spark.read.schema(QUARANTINED).parquet(*folders)
    return rows.dropDuplicates(["topic", "partition", "offset"]), folders


def replace_quarantine(rows: DataFrame, table_path: str, name: str, folders: tuple[str, ...]) -> None:
    """Leave only `rows`, in a new folder of this name. An interruption can leave rows twice, but loses none.

    The rows may still be read from the old `folders` while they are written."""
    if not rows.isEmpty():
        rows.coalesce(1).write.mode("error").parquet(f"{table_path}/{name}")
    remove_quarantine(rows.sparkSession, folders)


def remove_quarantine(spark: SparkSession, folders: Iterable[str]) -> None:
    """Remove folders that `read_quarantine` has returned."""
    for folder in folders:
        path, file_system = _hadoop_path(spark, folder)
        file_system.delete(path, True)


def _folders(spark: SparkSession, table_path: str) -> tuple[str, ...]:
    path, file_system = _hadoop_path(spark, table_path)
    if not file_system.exists(path):
        return ()
    return tuple(
        sorted(str(entry.getPath()) for entry in file_system.listStatus(path) if entry.isDirectory())
    )


def _hadoop_path(spark: SparkSession, text: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(text)
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
