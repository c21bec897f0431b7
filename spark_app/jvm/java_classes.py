"""Find the project's own Java classes in Spark's JVM. Each is looked up once."""

from __future__ import annotations

from functools import cache
from typing import Any

from pyspark.sql import SparkSession

_PACKAGE = "io.tributary.spark"


def java_class(spark: SparkSession, name: str) -> Any:
    """Return Py4J's handle of the class, such as `RowUpsert`.

    Py4J takes some milliseconds to find a class by its name, because it asks the JVM for each part of the
    name."""
    return _class(spark._jvm, name)


@cache
def _class(jvm: Any, name: str) -> Any:
    found = jvm
    for part in (*_PACKAGE.split("."), name):
        found = getattr(found, part)
    return found
