"""The Spark session that the app needs, wherever it runs."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi.options import SESSION_OPTIONS

_OPTIONS = {
    **SESSION_OPTIONS,
    # Timestamps without a zone are held as if in UTC, whatever the machine's zone.
    "spark.sql.session.timeZone": "UTC",
    # Column names that differ in case only are different columns.
    "spark.sql.caseSensitive": "true",
    # A batch is read where it is cached, by key: adaptive execution would only make several jobs of each.
    "spark.sql.adaptive.enabled": "false",
    # To try how well a batch could be compressed takes a sixth of decoding it; it is cached for some seconds.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Spark keeps the code that it made for 100 stages; a table has some twenty, and soon its next commit.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # The JVM compiles no method that is larger (HotSpot's HugeMethodLimit). Interpreted, the decoding of a
    # table of 25 numbers and dates, which Spark makes one method of, takes twice as long.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Tables share the cores; a small one does not wait for a large one's commit.
    "spark.scheduler.mode": "FAIR",
}


_OF_OTHERS = ("yarn.", "mapreduce.")
_NOT_OF_OTHERS = ("mapreduce.fileoutputcommitter.", "mapreduce.input.", "mapreduce.output.")
"""Beginnings of names in Hadoop's configuration that neither Spark's tasks nor Hudi read, two thirds of it,
and what they do read of those. Hudi sends all of it with each of its tasks."""


def start_session(name: str) -> SparkSession:
    """Master, memory, class path, credentials and catalogs come from spark-submit."""
    builder = SparkSession.builder.appName(name)
    for option, value in _OPTIONS.items():
        builder = builder.config(option, value)
    spark = builder.getOrCreate()
    if spark.conf.get("spark.sql.shuffle.partitions", "200") == "200":
        # A batch is small beside Spark's default of 200 partitions: one task a core.
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    jvm: Any = spark.sparkContext._jvm
    _look_up_once(jvm)
    _forget_settings_of_others(spark.sparkContext)
    return spark


def tables_at_once(spark: SparkSession) -> int:
    """How many tables to work at. A small commit is the driver's work for the most part: on one machine one a
    core, on a cluster, whose driver waits for S3 as long as it works, some more."""
    context = spark.sparkContext
    return max(2, context.defaultParallelism) if (context.master or "").startswith("local") else 8


def _forget_settings_of_others(context: Any) -> None:
    configuration = context._jsc.hadoopConfiguration()
    # The first use of this class has each configuration read all defaults again
    # (S3AFileSystem#addDeprecatedKeys, Configuration#reloadExistingConfigurations).
    configuration.getClassByNameOrNull("org.apache.hadoop.fs.s3a.S3AFileSystem")
    names, entries = [], configuration.iterator()
    while entries.hasNext():
        names.append(str(entries.next().getKey()))
    for name in names:
        if name.startswith(_OF_OTHERS) and not name.startswith(_NOT_OF_OTHERS):
            configuration.unset(name)


def _look_up_once(jvm: Any) -> None:
    """PySpark asks for these classes whenever it makes a column. Each time, Py4J would have the JVM look for
    one of that name in every package that PySpark imports, through every jar of the class path: a fifth of a
    small commit's time. An attribute that is there is not asked for."""
    for name in ("functions", "Column", "PythonUtils", "SparkSession", "SparkSession$"):
        setattr(jvm, name, getattr(jvm, name))
