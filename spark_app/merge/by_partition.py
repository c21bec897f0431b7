"""Conditions on changes that differ by partition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F


def is_before(applied: Mapping[int, bytes]) -> Column:
    """Return whether a change has a lower position than the one given for its partition."""
    return where_partition(
        {partition: F.col("position") < F.lit(position) for partition, position in applied.items()}
    )


def is_at(applied: Mapping[int, bytes]) -> Column:
    """Return whether a change has the position given for its partition."""
    return where_partition(
        {partition: F.col("position") == F.lit(position) for partition, position in applied.items()}
    )


def where_partition(conditions: Mapping[int, Column], of: str = "partition") -> Column:
    """Return the condition of the row's partition, the column `of`; false for a partition without one."""
    # One flat CASE: a topic can have hundreds of partitions.
    cases = reduce(lambda case, item: case.when(F.col(of) == item[0], item[1]), conditions.items(), F)
    return cases.otherwise(F.lit(False)) if conditions else F.lit(False)
