"""Before a commit, the app knows whether hudi-rs could still read older log files after it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_app.hudi.reader_limits import hides_arrays, hides_nested_times

NESTED = [
    ArrayType(IntegerType()),
    MapType(StringType(), StringType()),
    StructType([StructField("inner", StringType())]),
]


@pytest.mark.parametrize("nested", NESTED, ids=lambda data_type: data_type.typeName())
def test_a_new_column_hides_nested_values(nested: ArrayType | MapType | StructType) -> None:
    stored = StructType([StructField("id", IntegerType()), StructField("values", nested)])
    assert hides_arrays(stored, ["id", "values", "added"])
    assert not hides_arrays(stored, ["id", "values"])
    assert not hides_arrays(stored, ["id"])


def test_without_nested_values_nothing_is_hidden() -> None:
    stored = StructType([StructField("id", IntegerType())])
    assert not hides_arrays(stored, ["id", "added"])


@pytest.mark.parametrize(
    ("data_type", "is_hidden"),
    [
        (TimestampType(), False),
        (ArrayType(IntegerType()), False),
        (ArrayType(TimestampNTZType()), False),
        (ArrayType(TimestampType()), True),
        (MapType(StringType(), TimestampType()), True),
        (StructType([StructField("inner", ArrayType(TimestampType()))]), True),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, DataType) else "",
)
def test_times_within_other_values_are_hidden_in_log_files(data_type: DataType, is_hidden: bool) -> None:
    assert hides_nested_times(StructType([StructField("values", data_type)])) == is_hidden
