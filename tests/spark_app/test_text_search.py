"""Text is found in text where Spark finds it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.jvm.text_search import contains, starts_with

TEXTS = [None, "", "a", "ab", "abc", "cab", "ä", "äb", "b", "\N{GRINNING FACE}ab", "ab" * 1_000]


@pytest.mark.parametrize("part", ["", "a", "ab", "abc", "ab" * 1_000])
def test_text_is_found_where_spark_finds_it(spark: SparkSession, part: str) -> None:
    text = F.col("text")
    rows = spark.createDataFrame([(text,) for text in TEXTS], "text string").select(
        contains(text, part).alias("contains"),
        starts_with(text, part).alias("starts_with"),
        text.contains(part).alias("contains_by_spark"),
        text.startswith(part).alias("starts_with_by_spark"),
    )
    for row in rows.collect():
        assert row["contains"] == row["contains_by_spark"]
        assert row["starts_with"] == row["starts_with_by_spark"]


@pytest.mark.parametrize("part", ["ä", "äb", "\N{GRINNING FACE}"])
def test_text_begins_with_what_is_not_ascii(spark: SparkSession, part: str) -> None:
    rows = spark.createDataFrame([(text,) for text in TEXTS], "text string")
    found = [row[0] for row in rows.where(starts_with(F.col("text"), part)).collect()]
    assert found == [text for text in TEXTS if text is not None and text.startswith(part)]
