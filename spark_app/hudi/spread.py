"""How the rows of a commit are spread over Spark's tasks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

_ROWS_OF_A_TASK = 500_000
"""The most rows of a task, which sorts them in memory as far as there is enough."""


@dataclass(frozen=True)
class FewRows:
    """One task has all rows. Another task can write each bucket's rows without delay."""


@dataclass(frozen=True)
class ManyRows:
    """Many tasks have the rows, which come from this number of changes."""

    changes: int = 0


@dataclass(frozen=True)
class RowsInBuckets:
    """The rows are in the tasks of the table's `buckets`, grouped by bucket. No row has to be sent."""


MANY_ROWS = ManyRows()
"""Rows from an unknown number of changes."""

Spread = FewRows | ManyRows | RowsInBuckets


def tasks_of(spark: SparkSession, changes: int) -> int:
    """Return how many tasks write the rows of this many changes."""
    return max(int(str(spark.conf.get("spark.sql.shuffle.partitions"))), changes // _ROWS_OF_A_TASK)
