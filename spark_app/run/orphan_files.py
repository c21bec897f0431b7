"""Read which tables were removed from the lake, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from spark_app.run.text_files import texts_below
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
        decided = map(from_json, texts_below(self.spark, f"{self.location}/{ORPHANS_FOLDER}"))
        return frozenset(
            one.topic
            for one in decided
            if one is not None and one.decision == "removed" and one.topic is not None
        )
