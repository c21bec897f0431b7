"""Read the records of online snapshots, through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tributary.contract.online_snapshot import RECORDS_FOLDER, Read, from_json


class SnapshotStore(Protocol):
    """A store of the records of online snapshots. Only the side that asks for snapshots writes to it."""

    def read_ended(self) -> Mapping[str, Read]:
        """Return the snapshots that Kafka holds to their end, by the table's name: source.schema.table."""


@dataclass(frozen=True)
class SnapshotFiles:
    """A store in files below the quarantine location `location`."""

    spark: SparkSession
    location: str

    def read_ended(self) -> Mapping[str, Read]:
        jvm: Any = self.spark._jvm
        folder = jvm.org.apache.hadoop.fs.Path(f"{self.location}/{RECORDS_FOLDER}")
        file_system = folder.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
        if not file_system.exists(folder):
            return {}
        ended = {}
        files = file_system.listFiles(folder, True)
        while files.hasNext():
            stream = file_system.open(files.next().getPath())
            try:
                record = from_json(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
            if isinstance(record, Read):
                ended[str(record.request.table)] = record
        return ended
