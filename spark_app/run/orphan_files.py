"""Read which tables were removed from the lake, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tributary.contract.orphan import ORPHANS_FOLDER, from_json


class OrphanStore(Protocol):
    """A store of what was decided about orphans. Only the side that decides writes to it."""

    def read_removed(self) -> frozenset[str]:
        """Return the topics of removed tables. No table may be made from their events."""


@dataclass(frozen=True)
class OrphanFiles:
    """A store in files below the quarantine location `location`."""

    spark: SparkSession
    location: str

    def read_removed(self) -> frozenset[str]:
        jvm: Any = self.spark._jvm
        folder = jvm.org.apache.hadoop.fs.Path(f"{self.location}/{ORPHANS_FOLDER}")
        file_system = folder.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
        if not file_system.exists(folder):
            return frozenset()
        removed = set()
        files = file_system.listFiles(folder, True)
        while files.hasNext():
            # If somebody forgets the decision meanwhile, this raises, and the next look finds it so.
            stream = file_system.open(files.next().getPath())
            try:
                orphan = from_json(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
            if orphan is not None and orphan.decision == "removed" and orphan.topic is not None:
                removed.add(orphan.topic)
        return frozenset(removed)
