"""Rows that are computed once and read many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Held:
    """Rows that one Spark job has computed. They can be read until they are released."""

    rows: DataFrame
    release: Callable[[], object]

    @staticmethod
    def in_cache(rows: DataFrame) -> Held:
        """Hold the rows in Spark's cache, as columns."""
        cached = rows.cache()
        # Without a column, Spark counts the rows and reads no values.
        cached.select().write.format("noop").mode("overwrite").save()
        return Held(cached, cached.unpersist)
