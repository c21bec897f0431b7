"""Limits of readers other than Spark."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql.types import ArrayType, MapType, StructType

_NESTED = (ArrayType, MapType, StructType)


def hides_arrays(stored: StructType, written: Collection[str]) -> bool:
    """Return whether hudi-rs could no longer read the arrays in log files after a commit.

    `stored` are the source's columns of the table, `written` the names of the columns to write. After a
    commit with a new column, hudi-rs 0.5.0 takes the rows in older log files for partial ones. It then
    compares the types of arrays by the names of their elements, which Avro and Parquet name differently
    (pad_partial_to_target). A compaction before the commit avoids this."""
    has_nested = any(isinstance(field.dataType, _NESTED) for field in stored.fields)
    return has_nested and not set(written) <= set(stored.names)
