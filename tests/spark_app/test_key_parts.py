"""The parts of key columns by which a table can be partitioned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark_app.columns.key_parts import key_part_fields, with_key_parts, without_key_parts
from tests.spark_app.typed_frames import typed_frame
from tributary.contract.partitions import KeyPart

PARTS = (KeyPart("left", "id", 2), KeyPart("right", "id", 1), KeyPart("hash", "id", 16))
VALUES: Sequence[tuple[DataType, Sequence[tuple[Any, str]]]] = (
    (StringType(), [("c-0417", "c-0417"), ("", ""), ("ä€🚲", "ä€🚲"), ("x", "x")]),
    (IntegerType(), [(-12, "-12"), (7, "7")]),
    (LongType(), [(2**63 - 1, str(2**63 - 1))]),
    (DecimalType(10, 0), [(Decimal(1200), "1200")]),
    (DecimalType(26, 6), [(Decimal("7.500000"), "7.5"), (Decimal(70), "70"), (Decimal("-0.25"), "-0.25")]),
    (DateType(), [(date(2026, 3, 9), "2026-03-09")]),
)


def _parts_of(text: str) -> tuple[str, str, int]:
    """Return what docs/lake-file.md says of a text."""
    bucket = int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 16
    return text[:2], text[-1:], bucket


@pytest.mark.parametrize(
    ("data_type", "values"), VALUES, ids=lambda each: getattr(each, "simpleString", str)()
)
def test_each_part_is_that_of_the_values_text(
    spark: SparkSession, data_type: DataType, values: Sequence[tuple[Any, str]]
) -> None:
    schema = StructType([StructField("id", data_type), StructField("note", StringType())])
    rows = typed_frame(spark, [(value, "note") for value, _ in values], schema)
    found = with_key_parts(rows, PARTS)
    assert found.columns == ["id__left_2", "id__right_1", "id__hash_16", "id", "note"]
    fields = tuple(StructField(field.name, field.dataType) for field in found.schema.fields[:3])
    assert fields == key_part_fields(PARTS)
    assert [tuple(row)[:3] for row in found.collect()] == [_parts_of(text) for _, text in values]
    assert without_key_parts(found, PARTS).columns == rows.columns


def test_a_column_with_a_wider_type_leaves_each_row_in_its_partition(spark: SparkSession) -> None:
    """A number of DynamoDB becomes a decimal, more digits, and text."""
    found = set()
    types = ((LongType(), 70), (DecimalType(26, 6), Decimal(70)), (DecimalType(38, 12), Decimal(70)))
    for data_type, value in (*types, (StringType(), "70")):
        rows = typed_frame(spark, [(value,)], StructType([StructField("id", data_type)]))
        found |= {tuple(row)[:3] for row in with_key_parts(rows, PARTS).collect()}
    assert found == {_parts_of("70")}
