"""Send rows to the tasks that write the file groups of their keys, with the Java class Buckets.

It replaces a second shuffle: one shuffle would bring the changes of a key together, the other those of a file
group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.jvm.java_classes import java_class
from spark_app.steps.held import Held

_BITS_OF_HASH = 40


@dataclass(frozen=True)
class JavaBuckets:
    """The simple buckets of an unpartitioned Hudi table, distributed over `tasks` tasks.

    Rows have a column `key string`, not null, and any other columns."""

    tasks: int
    _java: Any = field(repr=False)

    @staticmethod
    def of(spark: SparkSession, hash_field: str, buckets: int, tasks: int) -> JavaBuckets:
        """Return the buckets of a table whose record key is the column `hash_field`."""
        return JavaBuckets(tasks, java_class(spark, "Buckets")(hash_field, buckets, tasks))

    def hold(self, rows: DataFrame) -> Held:
        """Compute the rows and send each to the task that has the bucket of its `key`. One Spark job."""
        held = self._java.hold(rows._jdf, F.col("key")._jc)
        return Held(DataFrame(held.rows(), rows.sparkSession), held.release)

    def bucket_of(self, key: Column) -> Column:
        """Return the bucket of a `string` key: `int`, null if the key is null."""
        return Column(self._java.bucketOf(key._jc))

    def first_of_each_key(self, held: DataFrame, *order: Column) -> DataFrame:
        """Return the first row of each key in this order, with all columns. The rows must be held here.

        In the result, a task's rows are grouped by bucket. The rows are sorted first by one number, computed
        from the bucket and a hash of the key, because record keys begin alike. Spark compares eight bytes
        before it looks up the rows."""
        bucket = self.bucket_of(F.col("key")).cast("bigint")
        hashed = F.shiftrightunsigned(F.xxhash64("key"), 64 - _BITS_OF_HASH)
        number = F.shiftleft(bucket, _BITS_OF_HASH) + hashed
        in_order = held.sortWithinPartitions(number, "key", *order)
        return DataFrame(self._java.firstOfEach(in_order._jdf, "key"), held.sparkSession)
