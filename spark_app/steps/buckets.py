"""The buckets of a table, by which rows can be sent to the tasks that write them."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import Column, DataFrame

from spark_app.steps.held import Held


class Buckets(Protocol):
    """The simple buckets of an unpartitioned Hudi table, distributed over `tasks` tasks.

    Rows have a column `key string`, not null, and any other columns."""

    @property
    def tasks(self) -> int: ...

    def hold(self, rows: DataFrame) -> Held:
        """Compute the rows and send each to the task that has the bucket of its `key`. One Spark job."""

    def bucket_of(self, key: Column) -> Column:
        """Return the bucket of a `string` key: `int`, null if the key is null."""

    def first_of_each_key(self, held: DataFrame, *order: Column) -> DataFrame:
        """Return the first row of each key in this order, with all columns. The rows must be held here.

        In the result, a task's rows are grouped by bucket."""
