"""Which columns a table can be partitioned by."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, TimestampNTZType, TimestampType

from spark_app.columns.table_columns import TableColumns
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile

_IN_TWO_PATHS = (TimestampType, TimestampNTZType, BinaryType, ArrayType, MapType, StructType)
"""Hudi's writers of Spark's rows and of Avro do not give a value of these the same partition: the path of one
has a timestamp's date and time in milliseconds, that of the other its microseconds since 1970, so that a row
would be there twice; and readers that look for its microseconds would not find it (BuiltinKeyGenerator,
HoodieAvroUtils#getNestedFieldValAsString)."""


class NotAPartitionColumn(TributaryError):
    """What a table is to be partitioned by does not say in which partition a row is."""


def check_partition_columns(partition_by: tuple[str, ...], columns: TableColumns) -> None:
    """Raises `NotAPartitionColumn`."""
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
