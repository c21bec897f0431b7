"""The keys of deleted rows, remembered for some time: a change that is older must not bring a row back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField, StructType, TimestampType

DELETED_KEY = StructType(
    [
        StructField("key", StringType()),
        StructField("position", BinaryType()),
        StructField("deleted_at", TimestampType()),
    ]
)
"""A key, the position of its delete, and when the table applied it."""

MOST_FOLDERS = 16
"""So many batches with deletes leave a folder each, before all of them become one."""


@dataclass(frozen=True)
class DeletedKeys:
    """The deleted keys of one table, in Parquet below `path`.

    A batch writes its deletes before its commit. If that fails, the keys are there all the same. This does no
    harm: they say how old a change of a key is at least, which is true without the commit, too."""

    spark: SparkSession
    path: str
    remembered: timedelta

    def remember(self, deleted: DataFrame, name: str) -> None:
        """Add `key, position` of the rows that a batch deletes. A repeated batch has the same name."""
        keys = deleted.select("key", "position", F.current_timestamp().alias("deleted_at"))
        if keys.isEmpty():
            return
        keys.coalesce(1).write.mode("overwrite").parquet(f"{self.path}/{name}")
        folders = self._folders()
        if len(folders) > MOST_FOLDERS:
            self._merge(folders)

    def positions(self) -> DataFrame | None:
        """Return `key, position` of the remembered deletes; None if there are none."""
        folders = self._folders()
        return self._read(folders).select("key", "position") if folders else None

    def _read(self, folders: Iterable[str]) -> DataFrame:
        rows = self.spark.read.schema(DELETED_KEY).parquet(*folders)
        oldest = F.current_timestamp() - F.expr(f"INTERVAL {int(self.remembered.total_seconds())} SECONDS")
        return rows.where(F.col("deleted_at") >= oldest)

    def _merge(self, folders: tuple[str, ...]) -> None:
        """Write all folders as one, without the keys whose time is over. An interruption loses no key."""
        latest = (
            self._read(folders)
            .groupBy("key")
            .agg(F.max("position").alias("position"), F.max("deleted_at").alias("deleted_at"))
        )
        latest.coalesce(1).write.parquet(f"{self.path}/merged-{uuid.uuid4().hex}")
        for folder in folders:
            path, file_system = self._hadoop(folder)
            file_system.delete(path, True)

    def _folders(self) -> tuple[str, ...]:
        path, file_system = self._hadoop(self.path)
        if not file_system.exists(path):
            return ()
        found = (entry.getPath() for entry in file_system.listStatus(path) if entry.isDirectory())
        # A folder without this file is of a write that did not end.
        is_whole = self._jvm.org.apache.hadoop.fs.Path
        return tuple(sorted(str(each) for each in found if file_system.exists(is_whole(each, "_SUCCESS"))))

    def _hadoop(self, text: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(text)
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm
