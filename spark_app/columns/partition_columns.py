"""The columns that a table can be partitioned by."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_app.columns.table_columns import TableColumns
from tributary.contract.errors import TributaryError
from tributary.contract.partitions import KeyPart, PartitionColumn
from tributary.contract.remedies import EditLakeFile

_IN_TWO_PATHS = (TimestampType, TimestampNTZType, BinaryType, ArrayType, MapType, StructType)
"""Types whose values Hudi writes to different partition paths, depending on the writer.

One of Hudi's writers takes Spark's rows, the other takes Avro. One path has a timestamp's date and time in
milliseconds, the other its microseconds since 1970. A row would be there twice, and readers that look for its
microseconds would not find it (BuiltinKeyGenerator, HoodieAvroUtils#getNestedFieldValAsString)."""

_WITH_PARTS = (StringType, IntegerType, LongType, DecimalType, DateType)
"""Types whose values have one text each, which a wider type of the column does not change."""


class NotAPartitionColumn(TributaryError):
    """A column in `partition_by` cannot say which partition a row belongs to."""


def check_partition_columns(partitions: Sequence[PartitionColumn], columns: TableColumns) -> None:
    """Check the entries of `partition_by` for a new table. Raises `NotAPartitionColumn`."""
    types = dict(columns.row)
    for partition in partitions:
        if partition.column not in types:
            raise NotAPartitionColumn(
                what="A table cannot be partitioned by a column that it does not have",
                where=f"column {partition.column}",
                found=f"columns {', '.join(columns.names)}",
                remedy=EditLakeFile("set partition_by to one of these columns, or leave the entry out"),
            )
        if isinstance(partition, KeyPart):
            _check_key_part(partition, types[partition.column], columns.key)
        elif isinstance(types[partition.column], _IN_TWO_PATHS):
            raise NotAPartitionColumn(
                what="A table cannot be partitioned by a column of this type",
                where=f"column {partition.column}",
                found=types[partition.column].simpleString(),
                expected="text, a number, a date or a boolean",
                remedy=EditLakeFile("set partition_by to another column, such as one with the day of a time"),
            )


def check_no_column_is_a_key_part(parts: Sequence[KeyPart], columns: TableColumns) -> None:
    """Raise `NotAPartitionColumn` if the source has a column with the name of a partition column."""
    for part in parts:
        if part.name in columns.names:
            raise NotAPartitionColumn(
                what="The source has a column with the name of a partition column of the lake's table",
                where=f"{part} in partition_by",
                found=f"column {part.name}",
                remedy="Rename the column in the source, or leave it out of the connector.",
            )


def _check_key_part(part: KeyPart, data_type: DataType, key: Sequence[str]) -> None:
    if part.column not in key:
        raise NotAPartitionColumn(
            what="A table can be partitioned by a part of a key column only, because no other value is fixed",
            where=f"{part} in partition_by",
            found=f"column {part.column}",
            expected=f"a column of the key: {', '.join(key)}",
            remedy=EditLakeFile("set partition_by to a part of one of these columns"),
        )
    if not isinstance(data_type, _WITH_PARTS):
        raise NotAPartitionColumn(
            what="A table cannot be partitioned by a part of a column of this type",
            where=f"{part} in partition_by",
            found=data_type.simpleString(),
            expected="text, a whole number, a decimal or a date",
            remedy=EditLakeFile("set partition_by to a part of another column of the key"),
        )
