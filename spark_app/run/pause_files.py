"""Read which tables are paused, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from spark_app.run.text_files import texts_below
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
        texts = texts_below(self.spark, f"{self.location}/{PAUSES_FOLDER}")
        return frozenset(str(pause.table) for text in texts if (pause := from_json(text)) is not None)
