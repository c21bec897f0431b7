"""Limits of readers other than Spark."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

_NESTED = (ArrayType, MapType, StructType)


def hides_arrays(stored: StructType, written: Collection[str]) -> bool:
    """Return whether hudi-rs could no longer read the arrays in log files after a commit.

    `stored` are the source's columns of the table, `written` the names of the columns to write. After a
    commit with a new column, hudi-rs 0.5.0 takes the rows in older log files for partial ones. It then
    compares the types of arrays by the names of their elements, which Avro and Parquet name differently
    (pad_partial_to_target). A compaction before the commit avoids this."""
    has_nested = any(isinstance(field.dataType, _NESTED) for field in stored.fields)
    return has_nested and not set(written) <= set(stored.names)


def hides_nested_times(written: StructType) -> bool:
    """Return whether hudi-rs cannot read log files with these columns.

    hudi-rs 0.5.0 gives a timestamp in a log file the zone `+00:00`, and one in a base file `UTC`. It converts
    a column from the one to the other, but not the elements of an array, a map or a struct. A compaction
    after the commit avoids this."""
    return any(isinstance(field.dataType, _NESTED) and _has_time(field.dataType) for field in written.fields)


def _has_time(data_type: DataType) -> bool:
    match data_type:
        case ArrayType():
            return _has_time(data_type.elementType)
        case MapType():
            return _has_time(data_type.keyType) or _has_time(data_type.valueType)
        case StructType():
            return any(_has_time(field.dataType) for field in data_type.fields)
    return isinstance(data_type, TimestampType)
