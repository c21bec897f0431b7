"""Projections: successive selects as one step of Spark, with the Java class of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class JavaProjections:
    """Wraps `io.tributary.spark.Projections`. Spark analyzes it once, and any session can apply it."""

    java: Any

    @staticmethod
    def of(rows: StructType, needed: str, steps: Sequence[Sequence[Column]]) -> JavaProjections:
        """Of rows of that type those whose column `needed` is not null, and the columns of each step, of the
        columns of the one before. Each value that a step selects is computed once, however often the next
        step uses it. A step cannot have a window, an aggregate or a generator."""
        spark = SparkSession.active()
        jvm: Any = spark._jvm
        columns = [[column._jc for column in step] for step in steps]
        return JavaProjections(
            jvm.io.tributary.spark.Projections.of(spark._jsparkSession, rows.json(), needed, columns)
        )

    def apply(self, rows: DataFrame) -> DataFrame:
        """Do the same as `rows.where(needed.isNotNull()).select(…).select(…)`."""
        return DataFrame(self.java.apply(rows._jdf), rows.sparkSession)
