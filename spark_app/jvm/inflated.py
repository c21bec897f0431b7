"""Undo the compression by zlib, with the Java class of the same name."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from spark_app.jvm.java_classes import java_class


def inflated(compressed: Column) -> Column:
    """Return the bytes before their compression; null if they are not what zlib writes."""
    return Column(java_class(SparkSession.active(), "Inflated").read(compressed._jc))
