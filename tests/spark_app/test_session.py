"""The Spark session in which all commits are made."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
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


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has this option")
def test_answers_of_the_jvm_are_acknowledged_at_once_in_each_thread(spark: SparkSession) -> None:
    """Linux would delay the acknowledgement by 40 ms, for which the rest of a long answer waits."""
    context: Any = spark.sparkContext

    def acknowledges_at_once() -> bool:
        long = "ü" * 200_000
        assert context._jvm.java.util.Objects.toString(long) == long
        used = context._gateway._gateway_client.get_thread_connection().socket
        return bool(used.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(acknowledges_at_once).result()
    assert acknowledges_at_once()
