"""Read which tables are paused, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tributary.contract.pause import PAUSES_FOLDER, from_json


class PauseStore(Protocol):
    """A store of the pauses of tables. Only the side that pauses writes to it."""

    def read_paused(self) -> frozenset[str]:
        """Return the paused tables by name: source.schema.table."""


@dataclass(frozen=True)
class PauseFiles:
    """A store in files below the quarantine location `location`."""

    spark: SparkSession
    location: str

    def read_paused(self) -> frozenset[str]:
        jvm: Any = self.spark._jvm
        folder = jvm.org.apache.hadoop.fs.Path(f"{self.location}/{PAUSES_FOLDER}")
        file_system = folder.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
        if not file_system.exists(folder):
            return frozenset()
        paused = set()
        files = file_system.listFiles(folder, True)
        while files.hasNext():
            # If somebody resumes a table meanwhile, this raises, and the next look finds it so.
            stream = file_system.open(files.next().getPath())
            try:
                pause = from_json(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
            if pause is not None:
                paused.add(str(pause.table))
        return frozenset(paused)
