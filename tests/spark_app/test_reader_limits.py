"""Before a commit, the app knows whether hudi-rs could still read older log files after it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructField, StructType

from spark_app.hudi.reader_limits import hides_arrays

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
