"""How the rows of a commit are spread over Spark's tasks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

_ROWS_OF_A_TASK = 500_000
"""A task sorts its rows in memory, as far as it has some."""


@dataclass(frozen=True)
class FewRows:
    """One task has all rows. Another one can write those of each bucket without delay."""


@dataclass(frozen=True)
class ManyRows:
    """Many tasks have the rows, which come from so many changes."""

    changes: int = 0


@dataclass(frozen=True)
class RowsInBuckets:
    """The rows are in the tasks of the table's `buckets`, bucket after bucket. Nothing has to be sent."""


MANY_ROWS = ManyRows()
"""Rows from changes that nobody has counted."""

Spread = FewRows | ManyRows | RowsInBuckets


def tasks_of(spark: SparkSession, changes: int) -> int:
    """Return how many tasks write the rows of so many changes."""
    return max(int(str(spark.conf.get("spark.sql.shuffle.partitions"))), changes // _ROWS_OF_A_TASK)
