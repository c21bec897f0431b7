"""Read topics and offsets from the metadata of bronze with the Java class BronzeMetadata.

It replaces a query of all rows. Such a query is a Spark job that takes longer as the history grows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from spark_app.jvm.java_classes import java_class


def topics_in_metadata(spark: SparkSession, table: str) -> frozenset[str] | None:
    """Return the topics with rows in the table with this full name. No Spark job.

    Returns None if some file's metadata does not say: a file with rows of several topics, or with deleted
    rows."""
    found = json.loads(java_class(spark, "BronzeMetadata").topics(spark._jsparkSession, table))
    return None if found is None else frozenset(found)


def offsets_in_metadata(
    spark: SparkSession, table: str, topics: Collection[str]
) -> Mapping[str, Mapping[int, tuple[int, int]]]:
    """Return the first and the last offset by topic and partition. No Spark job.

    A topic is left out if some file's metadata does not say: a file with rows of several topics or
    partitions, with deleted rows, or without statistics."""
    found = java_class(spark, "BronzeMetadata").extents(spark._jsparkSession, table, [*topics])
    return {
        topic: {int(partition): (first, last) for partition, (first, last) in offsets.items()}
        for topic, offsets in json.loads(found).items()
    }
