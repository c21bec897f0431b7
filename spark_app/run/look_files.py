"""Read which new tables may be made, through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from spark_app.run.text_files import texts_below
from tributary.contract.source_look import LOOKS_FOLDER, SourceLook


class LookStore(Protocol):
    """A store of the last looks at the sources' catalogs. Only the side that looks writes to it."""

    def read_looks(self) -> Mapping[str, SourceLook]:
        """Return the last look at each source, by the source's name."""


@dataclass(frozen=True)
class LookFiles:
    """A store in files below the quarantine location `location`."""

    spark: SparkSession
    location: str

    def read_looks(self) -> Mapping[str, SourceLook]:
        looks = map(SourceLook.from_json, texts_below(self.spark, f"{self.location}/{LOOKS_FOLDER}"))
        return {look.source: look for look in looks if look is not None}
