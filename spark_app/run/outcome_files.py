"""Store each outcome as a small file in the table's quarantine folder, through Hadoop's file systems."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from spark_app.run.text_files import read_text, remove_text, write_text


@dataclass(frozen=True)
class OutcomeFiles:
    """A store of outcomes in files. `folder` is always a table's quarantine path."""

    spark: SparkSession

    def read(self, folder: str) -> Outcome | None:
        text = read_text(self.spark, f"{folder}/{OUTCOME_FILE}")
        return None if text is None else Outcome.from_json(text)

    def write(self, folder: str, outcome: Outcome) -> None:
        write_text(self.spark, f"{folder}/{OUTCOME_FILE}", outcome.to_json())

    def clear(self, folder: str) -> None:
        remove_text(self.spark, f"{folder}/{OUTCOME_FILE}")
