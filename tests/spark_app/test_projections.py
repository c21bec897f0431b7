"""Projections return the rows that Spark's filter and selects return."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructField, StructType

from spark_app.steps import steps as both

pytestmark = pytest.mark.usefixtures("each_way_if_long")

ROWS = StructType(
    [
        StructField("number", IntegerType()),
        StructField("text", StringType()),
        StructField("bytes", BinaryType()),
        StructField("list", ArrayType(StringType())),
    ]
)
VALUES = [
    (0, "a", b"\0\xff", ["b", None]),
    (1, "\N{GRINNING FACE}" * 3, b"", []),
    (2, None, None, None),
    (3, "text", None, ["list"]),
    (None, "no number", None, None),
    *((number, "x" * number, b"y" * number, ["z" * number]) for number in range(4, 60)),
]
SOURCES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "given": lambda rows: rows,
    "shuffled": lambda rows: rows.repartition(3),
    "coalesced": lambda rows: rows.repartition(3).coalesce(1),
    "of an RDD": lambda rows: rows.sparkSession.createDataFrame(rows.rdd, ROWS),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("needed", ROWS.names)
def test_projections_equal_a_filter_and_selects(spark: SparkSession, source: str, needed: str) -> None:
    rows = SOURCES[source](spark.createDataFrame(VALUES, ROWS))
    steps = _steps()
    selected = rows.where(F.col(needed).isNotNull())
    for step in steps:
        selected = selected.select(*step)
    found = both.steps().projections(ROWS, needed, steps).apply(rows)
    assert found.dtypes == selected.dtypes
    assert sorted(found.collect(), key=str) == sorted(selected.collect(), key=str)


def test_projections_drop_all_rows_without_a_value_in_the_needed_column(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(number, None, None, None) for number in range(3)], ROWS)
    assert both.steps().projections(ROWS, "text", [[F.col("number")]]).apply(rows).collect() == []


def test_each_column_of_a_step_is_computed_once_per_row(spark: SparkSession) -> None:
    steps = ([F.expr("uuid()").alias("id")], [F.col("id").alias("one"), F.upper("id").alias("other")])
    found = (
        both.steps().projections(ROWS, "number", steps).apply(spark.createDataFrame(VALUES, ROWS)).collect()
    )
    assert all(row["one"].upper() == row["other"] for row in found)
    assert len({row["one"] for row in found}) == sum(number is not None for number, *_ in VALUES)


def _steps() -> list[list[Column]]:
    text, row = F.col("text"), F.col("row")
    return [
        [F.col(name) for name in ROWS.names],
        [
            F.col("number"),
            F.concat(text, F.lit("!")).alias("text"),
            F.struct("bytes", "list", "text").alias("row"),
        ],
        [F.when(F.col("number") > 1, row).alias("row"), F.length(text).alias("length"), text],
        [
            row["text"].alias("old"),
            text,
            F.struct("length", row["list"].alias("list")).alias("row"),
            row["bytes"],
        ],
    ]
