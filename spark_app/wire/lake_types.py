"""How each Debezium type looks in JSON and in the lake, and what stands for a value that an update left out.

Source: "Data type mappings" of Debezium's connectors (adaptive time precision; decimals as text with the
column's type in the schema, and as JSON numbers, as they were sent before), PostgresValueConverter,
the converters of MySQL and MariaDB, and io.debezium.connector.postgresql.UnchangedToastedPlaceholder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_app.wire import moments
from spark_app.wire.connect_schema import SOURCE_LENGTH, SOURCE_SCALE, SOURCE_TYPE, ConnectSchema
from spark_app.wire.conversion import (
    Conversion,
    Convert,
    UnsupportedType,
    as_it_is,
    decoded_base64,
    fallible,
    same,
    source_type_of,
)
from spark_app.wire.decimals import decimal, number_as_text, variable_scale_decimal
from tributary.contract.remedies import EditLakeFile
from tributary.contract.unchanged_value import (
    PLACEHOLDER,
    PLACEHOLDER_BASE64,
    PLACEHOLDER_JSON,
    PLACEHOLDER_UUID,
)


def conversion(column: str, schema: ConnectSchema) -> Conversion:
    """Return the conversion of a column. Raises `UnsupportedType` if the lake has no type for it."""
    if schema.name in _SEMANTIC:
        return _SEMANTIC[schema.name](schema)
    match schema.type:
        case "boolean":
            return as_it_is(BooleanType())
        case "int8" | "int16" | "int32":
            return as_it_is(IntegerType())
        case "int64":
            return as_it_is(LongType())
        case "float" | "float32":
            return as_it_is(FloatType())
        case "double" | "float64":
            return as_it_is(DoubleType())
        case "string":
            # A value with a semantic type, such as a timetz, is text even if it has a scale.
            number = None if schema.name else number_as_text(source_type_of(schema))
            return number or _text()
        case "bytes":
            return _binary()
        case "array" if schema.items is not None:
            return _array(column, schema, schema.items)
        case "map" if schema.map_values is not None:
            return _map(column, schema.map_values)
        case "struct":
            return _struct(column, schema)
    raise UnsupportedType(
        what="A column has a type that the lake cannot hold",
        where=f"column {column}",
        found=f"Connect type {schema.type!r}, semantic type {schema.name!r}",
        remedy=[
            "Change the column's type, or leave the table out.",
            EditLakeFile('exclude the table with a pattern such as "!schema.table"'),
        ],
    )


def _text() -> Conversion:
    # The second placeholder is that of an hstore, which is sent as the text of a JSON object.
    placeholders = (PLACEHOLDER, PLACEHOLDER_JSON)
    return Conversion(StringType(), StringType(), same, lambda value: value.isin(*placeholders))


def _enum(schema: ConnectSchema) -> Conversion:
    """Convert a value of an enumeration.

    Of MySQL and MariaDB, Debezium sends a comma in a streamed value as `\\,`, because it joins all values of
    the type with commas (measured with 3.5.0). A snapshot sends it as it is."""
    source = source_type_of(schema)
    if source is None or source.name != "ENUM":
        return _text()
    return Conversion(StringType(), StringType(), lambda value: F.replace(value, F.lit("\\,"), F.lit(",")))


def _binary() -> Conversion:
    return replace(
        fallible(StringType(), BinaryType(), decoded_base64),
        is_placeholder=lambda value: value == PLACEHOLDER_BASE64,
    )


def is_of_unknown_type(schema: ConnectSchema) -> bool:
    """Return whether Debezium did not know the column's type, and so sends the text of its values as bytes.

    This is so for events from before an enum or a domain was dropped, if the connector reads them after a
    start. Their type in the source is the one that the column has now, such as TEXT, with a scale of -1 and
    without a length (seen with 3.7.0; io.debezium.connector.postgresql.PostgresType#UNKNOWN). Every known
    type has a length."""
    return (
        schema.type == "bytes"
        and schema.name is None
        and schema.parameter(SOURCE_TYPE) not in (None, "BYTEA")
        and schema.parameter(SOURCE_LENGTH) is None
        and schema.parameter(SOURCE_SCALE) == "-1"
    )


def conversion_of_text(lake: DataType) -> Conversion:
    """Return the conversion of values whose text was sent as bytes to a type of `WITH_TEXT`."""
    return replace(
        fallible(StringType(), lake, lambda value: decoded_base64(value).cast("string").cast(lake)),
        is_placeholder=lambda value: value == PLACEHOLDER_BASE64,
    )


def _array(column: str, schema: ConnectSchema, items: ConnectSchema) -> Conversion:
    item = _number_in_array(schema, items) or conversion(column, items)
    to_lake: Convert = same if item.to_lake is same else (lambda value: F.transform(value, item.to_lake))
    placeholder = _ARRAY_PLACEHOLDERS.get("uuid" if _is_uuid(items) else items.type)
    item_has_failed = item.has_failed
    return Conversion(
        ArrayType(item.wire),
        ArrayType(item.lake),
        to_lake,
        is_placeholder=None if placeholder is None else lambda value: value == placeholder(),
        has_failed=None if item_has_failed is None else lambda value: F.exists(value, item_has_failed),
    )


def _number_in_array(schema: ConnectSchema, items: ConnectSchema) -> Conversion | None:
    """Debezium reports an array's type beside the array. Its name is the items' name after a `_`."""
    source = source_type_of(schema)
    if items.type != "string" or source is None or source.name != "_NUMERIC":
        return None
    return number_as_text(replace(source, name="NUMERIC"))


def _is_uuid(schema: ConnectSchema) -> bool:
    return schema.name == "io.debezium.data.Uuid"


def _map(column: str, values: ConnectSchema) -> Conversion:
    value = conversion(column, values)
    data_type = MapType(StringType(), value.lake)

    def is_placeholder(found: Column) -> Column:
        return F.map_keys(found) == F.array(F.lit(PLACEHOLDER))

    return Conversion(MapType(StringType(), value.wire), data_type, same, is_placeholder)


def _struct(column: str, schema: ConnectSchema) -> Conversion:
    fields = [(name, conversion(f"{column}.{name}", field)) for name, field in schema.fields]
    wire = StructType([StructField(name, field.wire) for name, field in fields])
    lake = StructType([StructField(name, field.lake) for name, field in fields])

    def to_lake(value: Column) -> Column:
        converted = F.struct(*[field.to_lake(value[name]).alias(name) for name, field in fields])
        return F.when(value.isNotNull(), converted)

    def has_failed(value: Column) -> Column:
        failures = [field.has_failed(value[name]) for name, field in fields if field.has_failed is not None]
        return reduce(lambda a, b: a | b, failures)

    can_fail = any(field.has_failed is not None for _, field in fields)
    return Conversion(wire, lake, to_lake, has_failed=has_failed if can_fail else None)


def _bytes_as(data_type: DataType) -> Column:
    return F.array(*[F.lit(byte).cast(data_type) for byte in PLACEHOLDER.encode()])


_ARRAY_PLACEHOLDERS: dict[str, Callable[[], Column]] = {
    "string": lambda: F.array(F.lit(PLACEHOLDER)),
    "uuid": lambda: F.array(F.lit(PLACEHOLDER_UUID)),
    "bytes": lambda: F.array(F.lit(PLACEHOLDER_BASE64)),
    "int32": lambda: _bytes_as(IntegerType()),
    "int64": lambda: _bytes_as(LongType()),
}


_SEMANTIC: dict[str, Callable[[ConnectSchema], Conversion]] = {
    "org.apache.kafka.connect.data.Decimal": decimal,
    "org.apache.kafka.connect.data.Date": lambda _: moments.DATE,
    "org.apache.kafka.connect.data.Time": lambda _: moments.TIME_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": lambda _: moments.TIMESTAMP_MILLIS,
    "io.debezium.data.Enum": _enum,
    "io.debezium.data.VariableScaleDecimal": variable_scale_decimal,
    "io.debezium.time.Date": lambda _: moments.DATE,
    "io.debezium.time.Interval": moments.interval,
    "io.debezium.time.Time": lambda _: moments.TIME_MILLIS,
    "io.debezium.time.MicroTime": lambda _: moments.TIME_MICROS,
    "io.debezium.time.Timestamp": lambda _: moments.TIMESTAMP_MILLIS,
    "io.debezium.time.MicroTimestamp": lambda _: moments.TIMESTAMP_MICROS,
    "io.debezium.time.NanoTime": lambda _: moments.TIME_NANOS,
    "io.debezium.time.NanoTimestamp": lambda _: moments.TIMESTAMP_NANOS,
    "io.debezium.time.ZonedTimestamp": moments.zoned_timestamp,
}
