"""Store each outcome as a small file in the table's quarantine folder, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from spark_app.run.outcome import OUTCOME_FILE, Outcome


@dataclass(frozen=True)
class OutcomeFiles:
    """A store of outcomes in files. `folder` is always a table's quarantine path."""

    spark: SparkSession

    def read(self, folder: str) -> Outcome | None:
        path, file_system = self._file(folder)
        if not file_system.exists(path):
            return None
        stream = file_system.open(path)
        try:
            return Outcome.from_json(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, folder: str, outcome: Outcome) -> None:
        path, file_system = self._file(folder)
        stream = file_system.create(path, True)
        try:
            stream.write(bytearray(outcome.to_json().encode()))
        finally:
            stream.close()

    def clear(self, folder: str) -> None:
        path, file_system = self._file(folder)
        file_system.delete(path, False)

    def _file(self, folder: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{folder}/{OUTCOME_FILE}")
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm
