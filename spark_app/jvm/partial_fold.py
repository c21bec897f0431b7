"""Drops changes that a later one of their key makes superfluous, within a task: the Java class PartialFold.

It replaces nothing. Without it, all changes go to the tasks that write them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark_app.jvm.java_classes import java_class


def partial_fold(changes: DataFrame) -> DataFrame:
    """Return the changes that the fold of the whole batch can need, as far as one task knows.

    A task drops a change if a complete change of the same key follows it both in the topic and in the source.
    Do not use it for a batch in which a primary key changed, or if deletes need the row's values.

    `changes` have at least the columns that `ChangeCounter.counted` lists. No Spark job."""
    spark = changes.sparkSession
    return DataFrame(java_class(spark, "PartialFold").of(changes._jdf), spark)
