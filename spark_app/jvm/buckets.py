"""Sends rows to the tasks that write the file groups of their keys: the Java class Buckets.

What it replaces is a second shuffle: one to bring the changes of a key together, one by file group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.jvm.held_rows import Held
from spark_app.jvm.java_classes import java_class

_BITS_OF_HASH = 40


@dataclass(frozen=True)
class Buckets:
    """The simple buckets of a Hudi table without partitions, shared out among so many `tasks`.

    Rows have a column `key string`, not null, and any others."""

    tasks: int
    _java: Any = field(repr=False)

    @staticmethod
    def of(spark: SparkSession, hash_field: str, buckets: int, tasks: int) -> Buckets:
        """Make the buckets of a table whose record key is the column `hash_field`."""
        return Buckets(tasks, java_class(spark, "Buckets")(hash_field, buckets, tasks))

    def hold(self, rows: DataFrame) -> Held:
        """Compute the rows and send each to the task that has the bucket of its `key`. One Spark job."""
        return Held.in_shuffle(self._java.hold(rows._jdf, F.col("key")._jc), rows.sparkSession)

    def bucket_of(self, key: Column) -> Column:
        """Return the bucket of a `string` key: `int`, null where the key is."""
        return Column(self._java.bucketOf(key._jc))

    def first_of_each_key(self, held: DataFrame, *order: Column) -> DataFrame:
        """Return the first row of each key in that order, with all columns, of rows that are held here.

        The rows of a task come bucket after bucket. They are sorted by one number first, of the bucket and a
        hash of the key: record keys begin alike, and Spark compares eight bytes before it looks up the
        rows."""
        bucket = self.bucket_of(F.col("key")).cast("bigint")
        hashed = F.shiftrightunsigned(F.xxhash64("key"), 64 - _BITS_OF_HASH)
        number = F.shiftleft(bucket, _BITS_OF_HASH) + hashed
        in_order = held.sortWithinPartitions(number, "key", *order)
        return DataFrame(self._java.firstOfEach(in_order._jdf, "key"), held.sparkSession)
