"""The additional columns of a table that is partitioned by parts of its key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, StringType, StructField

from spark_app.columns.retyping import text_of
from tributary.contract.partitions import KeyPart


def key_part_fields(parts: Sequence[KeyPart]) -> tuple[StructField, ...]:
    return tuple(StructField(part.name, _type(part)) for part in parts)


def with_key_parts(rows: DataFrame, parts: Sequence[KeyPart]) -> DataFrame:
    """Return the rows with an additional column for each part, before all others.

    There its place stays the same if the source adds columns."""
    if not parts:
        return rows
    return rows.select(*[_value(part, rows).alias(part.name) for part in parts], *rows.columns)


def without_key_parts(rows: DataFrame, parts: Sequence[KeyPart]) -> DataFrame:
    """Return the rows without the additional columns of the parts."""
    if not parts:
        return rows
    additional = {part.name for part in parts}
    return rows.select(*[name for name in rows.columns if name not in additional])


def _type(part: KeyPart) -> DataType:
    return IntegerType() if part.function == "hash" else StringType()


def _value(part: KeyPart, rows: DataFrame) -> Column:
    text = text_of(F.col(part.column), rows.schema[part.column].dataType)
    match part.function:
        case "left":
            return F.substring(text, 1, part.number)
        case "right":
            return F.right(text, F.lit(part.number))
        case "hash":
            # Every query engine has MD5, and 32 bits of it are a number everywhere.
            bits = F.conv(F.substring(F.md5(text), 1, 8), 16, 10).cast("bigint")
            return (bits % part.number).cast(_type(part))
