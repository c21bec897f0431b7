"""The keys of deleted rows, remembered for some time: a change that is older must not bring a row back."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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
"""A key, the position of its delete, and about when the table applied it."""

MOST_FOLDERS = 16
"""So many batches with deletes leave a folder each, before all of them become one."""

RESOLUTION = timedelta(minutes=10)
"""How exactly the time of a delete is known."""


@dataclass
class DeletedKeys:
    """The deleted keys of one table, in Parquet below `path`. Only this object may write there.

    Each key is remembered for a while at least, and forgotten when folders become one after that.

    A batch writes its deletes before its commit. If that fails, the keys are there all the same. This does no
    harm: they say how old a change of a key is at least, which is true without the commit, too."""

    spark: SparkSession
    path: str
    remembered: timedelta
    _folders: dict[str, bytes | None] | None = field(default=None, init=False)
    """The name of each folder, with a position that is not lower than any in it, if one is known."""

    def remember(self, deletes: DataFrame, name: str, newest: bytes | None) -> None:
        """Add `key, position` of a batch's deletes. No position is after `newest`; None: that is not known.

        A repeated batch has the same name, and the same deletes. They are not written again: the batch may be
        reading them."""
        if name not in self._known():
            keys = deletes.select("key", "position", F.lit(_rounded(datetime.now(UTC))).alias("deleted_at"))
            # A folder that is there, but not known, is of a write that did not end.
            keys.coalesce(1).write.mode("overwrite").parquet(f"{self.path}/{name}")
        self._known()[name] = newest

    def positions(self, since: bytes) -> DataFrame | None:
        """Return `key, position` of the remembered deletes, at least of those that are not before `since`.

        None if there are none. The rows can be read until `merge_if_many` is called."""
        wanted = [name for name, newest in self._known().items() if newest is None or newest >= since]
        return self._read(wanted).select("key", "position") if wanted else None

    def merge_if_many(self) -> None:
        """Make one folder of all if there are many, without the keys whose time is over."""
        if len(self._known()) > MOST_FOLDERS:
            self._merge()

    def forget(self) -> None:
        """Forget which folders there are, because somebody else may have written."""
        self._folders = None

    def latest(self) -> DataFrame | None:
        """Return `key, deleted_at` of all keys, with about the last time; None if there are none."""
        folders = self._known()
        if not folders:
            return None
        return self._read(folders).groupBy("key").agg(F.max("deleted_at").alias("deleted_at"))

    def erase(self, keys: Collection[str]) -> None:
        """Leave no file with one of these keys, also of a write that did not end.

        Nothing else may write meanwhile. An interruption loses no other key, and it can be repeated."""
        self._delete(set(self._listed(is_whole=False)) - self._known().keys())
        known = tuple(self._known())
        is_its = F.col("key").isin(*keys)
        if keys and known and not self._read(known).where(is_its).isEmpty():
            self._replace(self._read(known).where(~is_its))

    def _read(self, names: Iterable[str]) -> DataFrame:
        return self.spark.read.schema(DELETED_KEY).parquet(*[f"{self.path}/{name}" for name in names])

    def _merge(self) -> None:
        folders = self._known()
        oldest = _rounded(datetime.now(UTC) - self.remembered)
        latest = (
            self._read(folders)
            .where(F.col("deleted_at") >= F.lit(oldest))
            .groupBy("key")
            .agg(F.max("position").alias("position"), F.max("deleted_at").alias("deleted_at"))
        )
        self._replace(latest)

    def _replace(self, keys: DataFrame) -> None:
        """Leave only these keys, in one folder. An interruption before the end leaves some of them twice."""
        folders = self._known()
        merged = f"merged-{uuid.uuid4().hex}"
        keys.coalesce(1).write.parquet(f"{self.path}/{merged}")
        known = [newest for newest in folders.values() if newest is not None]
        self._folders = {merged: max(known) if len(known) == len(folders) else None}
        self._delete(folders)

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            path, file_system = self._hadoop(f"{self.path}/{name}")
            file_system.delete(path, True)

    def _known(self) -> dict[str, bytes | None]:
        if self._folders is None:
            self._folders = dict.fromkeys(self._listed())
        return self._folders

    def _listed(self, *, is_whole: bool = True) -> tuple[str, ...]:
        path, file_system = self._hadoop(self.path)
        if not file_system.exists(path):
            return ()
        found = (entry.getPath() for entry in file_system.listStatus(path) if entry.isDirectory())
        # A folder without this file is of a write that did not end.
        in_folder = self._jvm.org.apache.hadoop.fs.Path
        wanted = (each for each in found if not is_whole or file_system.exists(in_folder(each, "_SUCCESS")))
        return tuple(sorted(str(each.getName()) for each in wanted))

    def _hadoop(self, text: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(text)
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm


def _rounded(moment: datetime) -> datetime:
    """Return the moment, rounded down.

    Spark compiles a query again for each other time in it. That takes longer than most batches."""
    return moment - (moment - datetime.min.replace(tzinfo=UTC)) % RESOLUTION
