"""The Spark session in which all commits are made."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def test_tasks_are_sent_nothing_that_only_yarn_reads_and_all_that_spark_writes_files_by(
    spark: SparkSession,
) -> None:
    context: Any = spark.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    context._jvm.org.apache.hadoop.fs.s3a.S3AFileSystem()
    names, entries = set(), configuration.iterator()
    while entries.hasNext():
        names.add(str(entries.next().getKey()))
    assert not {name for name in names if name.startswith("yarn.")}
    assert {"fs.s3a.impl", "io.file.buffer.size"} <= names
    # Hadoop's own default is 2, whose files are visible before the job has ended.
    assert configuration.get("mapreduce.fileoutputcommitter.algorithm.version") == "1"
