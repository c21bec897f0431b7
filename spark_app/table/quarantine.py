"""The quarantine: unchanged events that could not be applied, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType, TimestampType

from spark_app.sources.event import EVENT, OffsetRange
from spark_app.wire.reasons import MISMATCH

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


def quarantined(events: DataFrame, bad: DataFrame) -> DataFrame:
    """Return the events that `bad` lists, as `QUARANTINED`.

    Columns of `bad`: `topic, partition, offset, reason, message`. With `row` and `unavailable`, the message
    names the columns of a JSON event that have a value there, and none in the row."""
    why = bad.select("topic", "partition", "offset", "reason", "message", _empty_columns(bad).alias("empty"))
    unread = F.filter("empty", _has_value)
    message = F.when(
        F.size(unread) > 0, F.concat("message", F.lit(" In "), F.array_join(unread, ", "), F.lit("."))
    )
    return events.join(F.broadcast(why), ["topic", "partition", "offset"], "inner").select(
        *EVENT.fieldNames(),
        "reason",
        F.coalesce(message, F.col("message")).alias("message"),
        F.current_timestamp().alias("quarantined_at"),
    )


def _empty_columns(bad: DataFrame) -> Column:
    """Return the names of the columns in which the rows of unfit values have none; null for other reasons."""
    if "row" not in bad.columns:
        return F.lit(None).cast(ArrayType(StringType()))
    row = F.col("row")
    names = row_type.names if isinstance(row_type := bad.schema["row"].dataType, StructType) else []
    empty = F.array_compact(F.array(*[F.when(row[name].isNull(), F.lit(name)) for name in names]))
    is_unfit = (F.col("reason") == MISMATCH) & row.isNotNull()
    return F.when(is_unfit, F.array_except(empty, F.col("unavailable")))


def _has_value(column: Column) -> Column:
    """Return whether an event's JSON has a value for the column: in an envelope, or in an unwrapped row."""
    text = F.col("value").cast(StringType())
    paths = [F.concat(F.lit(f"${path}['"), column, F.lit("']")) for path in _ROWS]
    return F.coalesce(*[F.call_function("get_json_object", text, path) for path in paths]).isNotNull()


_ROWS = (".payload.after", ".after", ".payload", "")
"""The places of a row in an event's JSON."""


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
    """Leave only `rows`, in a folder of this name. An interruption can leave rows twice, but loses none."""
    kept = f"{table_path}/{name}"
    if not rows.isEmpty():
        rows.coalesce(1).write.mode("overwrite").parquet(kept)
    remove_quarantine(rows.sparkSession, [folder for folder in folders if not folder.endswith(f"/{name}")])


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
