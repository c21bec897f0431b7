"""The conversion of one column's JSON value to its value in the lake, and the parts of such conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_app.wire.connect_schema import SOURCE_LENGTH, SOURCE_SCALE, SOURCE_TYPE, ConnectSchema
from tributary.contract.errors import TributaryError

Convert = Callable[[Column], Column]


class UnsupportedType(TributaryError):
    """The lake cannot hold a column's type."""


@dataclass(frozen=True)
class Conversion:
    """The conversion of one column's JSON value to its value in the lake.

    wire            the type for parsing the JSON
    is_placeholder  true for a wire value that stands for an unchanged value
    has_failed      true for a wire value that exists and that the lake type cannot hold
    """

    wire: DataType
    lake: DataType
    to_lake: Convert
    is_placeholder: Convert | None = None
    has_failed: Convert | None = None


def as_it_is(data_type: DataType) -> Conversion:
    """Return the conversion of values that JSON and the lake hold alike."""
    return Conversion(data_type, data_type, to_lake=same)


def same(value: Column) -> Column:
    """Convert nothing."""
    return value


def fallible(wire: DataType, lake: DataType, to_lake: Convert) -> Conversion:
    """Return a conversion that gives null for values that it cannot convert."""
    return Conversion(
        wire, lake, to_lake, has_failed=lambda value: value.isNotNull() & to_lake(value).isNull()
    )


def decoded_base64(value: Column) -> Column:
    """Return the decoded bytes; null if the text is not base64, for which `unbase64` would fail the job."""
    return F.try_to_binary(value, F.lit("base64"))


@dataclass(frozen=True)
class SourceType:
    """A column's type in its database, as Debezium reports it (`column.propagate.source.type`).

    The name of the type or domain is in upper case. The length is what the type was declared with, or one of
    the driver's own."""

    name: str
    length: int
    scale: int | None


def source_type_of(schema: ConnectSchema) -> SourceType | None:
    """Return the column's type in its database; None if the schema does not tell it."""
    name, length = schema.parameter(SOURCE_TYPE), schema.parameter(SOURCE_LENGTH)
    scale = schema.parameter(SOURCE_SCALE)
    if name is None or length is None:
        return None
    return SourceType(name, int(length), None if scale is None else int(scale))
