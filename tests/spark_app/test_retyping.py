"""Rewriting a table's rows for one column's wider type leaves every other column as it is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.retyping import in_type

pytestmark = pytest.mark.slow

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VALUES: dict[str, tuple[DataType, Any, Any]] = {
    "boolean": (BooleanType(), True, False),
    "int": (IntegerType(), 7, -1),
    "long": (LongType(), 2**40, -1),
    "float": (FloatType(), 0.5, 0.25),
    "double": (DoubleType(), 0.1, 1e300),
    "decimal": (DecimalType(10, 2), Decimal("10.50"), Decimal("-3.00")),
    "text": (StringType(), "b", "a "),
    "bytes": (BinaryType(), bytearray(b"\xff\x00"), bytearray(b"")),
    "date": (DateType(), date(2026, 1, 2), date(1, 1, 1)),
    "moment": (TimestampType(), MOMENT, MOMENT),
}
"""By a name: a type of the lake, and two of its values, the first of which sorts last."""


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rows with a column of each type, and arrays of it in no order, with a null and a repetition."""
    folder = str(tmp_path_factory.mktemp("retyping") / "rows")
    fields = [StructField(name, kind) for name, (kind, _, _) in VALUES.items()]
    arrays = [StructField(f"{name}s", ArrayType(kind)) for name, (kind, _, _) in VALUES.items()]
    full = [value for _, value, _ in VALUES.values()]
    lists = [[None, value, other, value] for _, value, other in VALUES.values()]
    rows = [[*full, *lists], [None] * (2 * len(VALUES)), [*full, *([] for _ in lists)]]
    spark.createDataFrame(rows, StructType([*fields, *arrays])).write.parquet(folder)
    return spark.read.parquet(folder)


def test_a_column_that_keeps_its_type_keeps_its_values(stored: Any) -> None:
    same = stored.select(*(in_type(stored, one.name, one.dataType).alias(one.name) for one in stored.schema))
    assert same.schema == stored.schema
    assert same.collect() == stored.collect()


@pytest.mark.parametrize(
    ("name", "wider"),
    [("int", LongType()), ("float", DoubleType()), ("decimal", DecimalType(20, 4))],
)
def test_wider_numbers_keep_their_values_and_arrays_their_order(
    stored: Any, name: str, wider: DataType
) -> None:
    many = f"{name}s"
    found = stored.select(
        in_type(stored, name, wider).alias(name), in_type(stored, many, ArrayType(wider)).alias(many)
    )
    assert found.schema[name].dataType == wider
    assert [tuple(row) for row in found.collect()] == [
        (row[name], row[many]) for row in stored.select(name, many).collect()
    ]


def test_a_set_of_numbers_becomes_the_set_of_their_texts(spark: SparkSession, tmp_path: Path) -> None:
    sets = spark.createDataFrame([([2, 10],)], "numbers array<int>").select(
        F.col("numbers").cast("array<decimal(10,2)>")
    )
    sets.write.parquet(str(tmp_path / "rows"))
    stored = spark.read.parquet(str(tmp_path / "rows"))
    found = stored.select(in_type(stored, "numbers", ArrayType(StringType())).alias("numbers"))
    assert found.collect()[0]["numbers"] == ["10", "2"]
