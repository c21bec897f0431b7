"""The columns that a table can be partitioned by."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, TimestampNTZType, TimestampType

from spark_app.columns.table_columns import TableColumns
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile

_IN_TWO_PATHS = (TimestampType, TimestampNTZType, BinaryType, ArrayType, MapType, StructType)
"""Types whose values Hudi writes to different partition paths, depending on the writer.

One of Hudi's writers takes Spark's rows, the other takes Avro. One path has a timestamp's date and time in
milliseconds, the other its microseconds since 1970. A row would be there twice, and readers that look for its
microseconds would not find it (BuiltinKeyGenerator, HoodieAvroUtils#getNestedFieldValAsString)."""


class NotAPartitionColumn(TributaryError):
    """A column in `partition_by` cannot say which partition a row belongs to."""


def check_partition_columns(partition_by: tuple[str, ...], columns: TableColumns) -> None:
    """Check the columns in `partition_by`. Raises `NotAPartitionColumn`."""
    types = dict(columns.row)
    for column in partition_by:
        if column not in types:
            raise NotAPartitionColumn(
                what="A table cannot be partitioned by a column that it does not have",
                where=f"column {column}",
                found=f"columns {', '.join(columns.names)}",
                remedy=EditLakeFile("set partition_by to one of these columns, or leave the entry out"),
            )
        if isinstance(types[column], _IN_TWO_PATHS):
            raise NotAPartitionColumn(
                what="A table cannot be partitioned by a column of this type",
                where=f"column {column}",
                found=types[column].simpleString(),
                expected="text, a number, a date or a boolean",
                remedy=EditLakeFile("set partition_by to another column, such as one with the day of a time"),
            )
