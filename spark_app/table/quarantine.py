"""The quarantine: events that could not be applied, as they came, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
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
"""An `EVENT` with the code and the text of why it could not be applied (`wire.reasons.REASONS`)."""


def quarantined(events: DataFrame, bad: DataFrame) -> DataFrame:
    """The events, as `QUARANTINED`, of which `bad` holds `topic, partition, offset, reason, message`."""
    why = bad.select("topic", "partition", "offset", "reason", "message")
    return events.join(F.broadcast(why), ["topic", "partition", "offset"], "inner").select(
        *EVENT.fieldNames(), "reason", "message", F.current_timestamp().alias("quarantined_at")
    )


def write_quarantine(rows: DataFrame, table_path: str, epoch: int, ranges: tuple[OffsetRange, ...]) -> str:
    """Writes `QUARANTINED` rows of one batch and returns where.

    The folder is named after the batch's offsets, so that a batch that is tried again replaces its own.
    """
    batch = "-".join(f"p{r.partition}-{r.first}-{r.until}" for r in ranges)
    folder = f"{table_path}/e{epoch}-{batch}"
    rows.coalesce(1).write.mode("overwrite").parquet(folder)
    return folder


def read_quarantine(
    spark: SparkSession, table_path: str, epoch: int
) -> tuple[DataFrame, tuple[str, ...]] | None:
    """The `QUARANTINED` rows of a table and an epoch of its topic, each once, and the folders that hold them;
    None where there are none."""
    folders = tuple(f for f in _folders(spark, table_path) if f.rpartition("/")[2].startswith(f"e{epoch}-"))
    if not folders:
        return None
    rows = spark.read.schema(QUARANTINED).parquet(*folders)
    return rows.dropDuplicates(["topic", "partition", "offset"]), folders


def replace_quarantine(rows: DataFrame, table_path: str, name: str, folders: tuple[str, ...]) -> None:
    """Leaves only `rows`, in a folder of that name. Interrupted, it leaves some twice, and none out."""
    kept = f"{table_path}/{name}"
    if not rows.isEmpty():
        rows.coalesce(1).write.mode("overwrite").parquet(kept)
    remove_quarantine(rows.sparkSession, [folder for folder in folders if not folder.endswith(f"/{name}")])


def remove_quarantine(spark: SparkSession, folders: Iterable[str]) -> None:
    """Removes folders that `read_quarantine` has named."""
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
