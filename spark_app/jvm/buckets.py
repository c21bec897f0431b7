"""Buckets: changes brought to the tasks that write the file groups of their keys, before anything is asked of
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_BITS_OF_HASH = 40


@dataclass(frozen=True)
class Held:
    """Rows that were worked out, in one Spark job, and can be read many times, until they are released."""

    rows: DataFrame
    release: Callable[[], object]

    @staticmethod
    def in_cache(rows: DataFrame) -> Held:
        cached = rows.cache()
        # Without a column, Spark counts the rows and reads none.
        cached.select().write.format("noop").mode("overwrite").save()
        return Held(cached, cached.unpersist)


@dataclass(frozen=True)
class Buckets:
    """Those of one table. `java`: its `io.tributary.spark.Buckets`."""

    java: Any

    def hold(self, rows: DataFrame) -> Held:
        """Each row in the task that has the bucket of its `key`; they are what a shuffle has written."""
        held = self.java.hold(rows._jdf, F.col("key")._jc)
        return Held(DataFrame(held.rows(), rows.sparkSession), held.release)

    def first_of_each_key(self, held: DataFrame, *order: Column) -> DataFrame:
        """Of rows that are in their buckets, those of each task bucket after bucket.

        Sorted by one number first, of the bucket and a hash of the key: record keys begin alike, and Spark
        compares eight bytes before it looks up the rows."""
        bucket = Column(self.java.bucketOf(F.col("key")._jc)).cast("bigint")
        hashed = F.shiftrightunsigned(F.xxhash64("key"), 64 - _BITS_OF_HASH)
        number = F.shiftleft(bucket, _BITS_OF_HASH) + hashed
        in_order = held.sortWithinPartitions(number, "key", *order)
        return DataFrame(self.java.firstOfEach(in_order._jdf, "key"), held.sparkSession)
