"""Projections: selects one after the other as one step of Spark's, the Java class of that name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Projections:
    """`java`: its `io.tributary.spark.Projections`. It is analysed once, and can be applied in any session of
    the JVM."""

    java: Any

    @staticmethod
    def of(rows: StructType, needed: str, steps: Sequence[Sequence[Column]]) -> Projections:
        """Of rows of that type those whose column `needed` is not null, and the columns of each step, of the
        columns of the one before. Each value that a step selects is computed once, however often the next
        step uses it. A step cannot have a window, an aggregate or a generator."""
        spark = SparkSession.active()
        jvm: Any = spark._jvm
        columns = [[column._jc for column in step] for step in steps]
        return Projections(
            jvm.io.tributary.spark.Projections.of(spark._jsparkSession, rows.json(), needed, columns)
        )

    def apply(self, rows: DataFrame) -> DataFrame:
        """As `rows.where(needed.isNotNull()).select(…).select(…)`."""
        return DataFrame(self.java.apply(rows._jdf), rows.sparkSession)
