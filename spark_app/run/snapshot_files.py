"""Read the records of online snapshots, through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from spark_app.run.text_files import texts_below
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
        records = map(from_json, texts_below(self.spark, f"{self.location}/{RECORDS_FOLDER}"))
        return {str(one.request.table): one for one in records if isinstance(one, Read)}
