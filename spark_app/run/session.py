"""Start the app's Spark session, locally and on EMR."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi.options import SESSION_OPTIONS
from spark_app.run.prompt_answers import answer_promptly
from tributary.contract.avro_limits import AVRO_LIMITS

_OPTIONS = {
    **SESSION_OPTIONS,
    # Timestamps without a zone are held as if in UTC, in any machine's time zone.
    "spark.sql.session.timeZone": "UTC",
    # Column names that differ only in case are different columns.
    "spark.sql.caseSensitive": "true",
    # Files and messages hold days before 1582 by the calendar of ISO 8601, as the databases do. By default,
    # Spark refuses them.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # Batches are cached and read by key. Adaptive execution would only split each read into several jobs.
    "spark.sql.adaptive.enabled": "false",
    # A batch is cached for seconds only, and testing how well it compresses costs a sixth of its decoding.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # By default Spark keeps the generated code of 100 stages. Each table needs about twenty at every commit.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # The JVM does not compile larger methods (HotSpot's HugeMethodLimit). Spark would generate one method to
    # decode a table of 25 numbers and dates. Interpreted, that method takes twice as long.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Tables share the cores, so a small table does not wait for a large table's commit.
    "spark.scheduler.mode": "FAIR",
}


_OF_OTHERS = ("yarn.", "mapreduce.")
_NOT_OF_OTHERS = ("mapreduce.fileoutputcommitter.", "mapreduce.input.", "mapreduce.output.")
"""Prefixes of Hadoop options that neither Spark's tasks nor Hudi read, and exceptions that they do read.

Hudi sends all options with each of its tasks. Two thirds of them have these prefixes.
"""


def start_session(name: str) -> SparkSession:
    """Start the session. Master, memory, class path, credentials and catalogs come from spark-submit."""
    builder = SparkSession.builder.appName(name)
    for option, value in _OPTIONS.items():
        builder = builder.config(option, value)
    spark = builder.getOrCreate()
    if spark.conf.get("spark.sql.shuffle.partitions", "200") == "200":
        # Spark's default of 200 partitions is too many for a batch. One task a core is enough.
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    answer_promptly(spark.sparkContext)
    jvm: Any = spark.sparkContext._jvm
    _look_up_once(jvm)
    for name, value in AVRO_LIMITS.items():
        jvm.java.lang.System.setProperty(name, value)
    _forget_settings_of_others(spark.sparkContext)
    return spark


def tables_at_once(spark: SparkSession) -> int:
    """Return how many tables to work on at the same time.

    A small commit is mostly the driver's work. On one machine that allows one table a core. A cluster allows
    more, because its driver waits for S3 half of the time.
    """
    context = spark.sparkContext
    return max(2, context.defaultParallelism) if (context.master or "").startswith("local") else 8


def _forget_settings_of_others(context: Any) -> None:
    configuration = context._jsc.hadoopConfiguration()
    # The first use of this class makes each configuration read all defaults again
    # (S3AFileSystem#addDeprecatedKeys, Configuration#reloadExistingConfigurations).
    configuration.getClassByNameOrNull("org.apache.hadoop.fs.s3a.S3AFileSystem")
    names, entries = [], configuration.iterator()
    while entries.hasNext():
        names.append(str(entries.next().getKey()))
    for name in names:
        if name.startswith(_OF_OTHERS) and not name.startswith(_NOT_OF_OTHERS):
            configuration.unset(name)


def _look_up_once(jvm: Any) -> None:
    """Cache the Java classes that PySpark looks up for every column.

    For each lookup, Py4J makes the JVM search every package that PySpark imports, in every jar of the class
    path. That took a fifth of a small commit's time. Py4J does not look up an attribute that exists.
    """
    for name in ("functions", "Column", "PythonUtils", "SparkSession", "SparkSession$"):
        setattr(jvm, name, getattr(jvm, name))
