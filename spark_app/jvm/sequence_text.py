"""The places in Debezium's `source.sequence` of a PostgreSQL change: the Java class SequenceText."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession


def places_of_sequence(sequence: Column) -> tuple[Column, Column]:
    """The two log sequence numbers, `bigint`, of `["24023119","24023128"]`; null where one is no number."""
    jvm: Any = SparkSession.active()._jvm
    java = jvm.io.tributary.spark.SequenceText
    return Column(java.first(sequence._jc)), Column(java.last(sequence._jc))
