"""How each Debezium type looks in JSON and in the lake, and what stands for a missing TOAST value.

Source: "Data type mappings" of Debezium's connectors (adaptive time precision; decimals as text with the
column's type in the schema, and as JSON numbers, as they were sent before), PostgresValueConverter,
the converters of MySQL and MariaDB, and io.debezium.connector.postgresql.UnchangedToastedPlaceholder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.wire.connect_schema import (
    SOURCE_LENGTH,
    SOURCE_SCALE,
    SOURCE_TYPE,
    WRITTEN_AS_BASE64,
    ConnectSchema,
)
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile
from tributary.contract.unchanged_value import (
    PLACEHOLDER,
    PLACEHOLDER_BASE64,
    PLACEHOLDER_JSON,
    PLACEHOLDER_UUID,
)

MAX_DECIMAL_PRECISION = 38
_MICROSECONDS_PER_HOUR = 3_600_000_000

Convert = Callable[[Column], Column]


class UnsupportedType(TributaryError):
    """The lake cannot hold a column's type."""


@dataclass(frozen=True)
class Conversion:
    """The conversion of one column's JSON value to its value in the lake.

    wire            the type for parsing the JSON
    is_placeholder  true for a wire value that stands for an unchanged TOAST value
    has_failed      true for a wire value that exists and that the lake type cannot hold
    """

    wire: DataType
    lake: DataType
    to_lake: Convert
    is_placeholder: Convert | None = None
    has_failed: Convert | None = None


def conversion(column: str, schema: ConnectSchema) -> Conversion:
    """Return the conversion of a column. Raises `UnsupportedType` if the lake has no type for it."""
    if schema.name in _SEMANTIC:
        return _SEMANTIC[schema.name](schema)
    match schema.type:
        case "boolean":
            return _as_it_is(BooleanType())
        case "int8" | "int16" | "int32":
            return _as_it_is(IntegerType())
        case "int64":
            return _as_it_is(LongType())
        case "float" | "float32":
            return _as_it_is(FloatType())
        case "double" | "float64":
            return _as_it_is(DoubleType())
        case "string":
            # A value with a semantic type, such as a timetz, is text even if it has a scale.
            number = None if schema.name else _number_as_text(_source_type(schema))
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


def _as_it_is(data_type: DataType) -> Conversion:
    return Conversion(data_type, data_type, to_lake=_same)


def _same(value: Column) -> Column:
    return value


def _text() -> Conversion:
    # The second placeholder is that of an hstore, which is sent as the text of a JSON object.
    placeholders = (PLACEHOLDER, PLACEHOLDER_JSON)
    return Conversion(StringType(), StringType(), _same, lambda value: value.isin(*placeholders))


def _enum(schema: ConnectSchema) -> Conversion:
    """Convert a value of an enumeration.

    Of MySQL and MariaDB, Debezium sends a comma in a streamed value as `\\,`, because it joins all values of
    the type with commas (measured with 3.5.0). A snapshot sends it as it is."""
    source = _source_type(schema)
    if source is None or source.name != "ENUM":
        return _text()
    return Conversion(StringType(), StringType(), lambda value: F.replace(value, F.lit("\\,"), F.lit(",")))


def _fallible(wire: DataType, lake: DataType, to_lake: Convert) -> Conversion:
    """Return a conversion that gives null for values that it cannot convert."""
    return Conversion(
        wire, lake, to_lake, has_failed=lambda value: value.isNotNull() & to_lake(value).isNull()
    )


def _binary() -> Conversion:
    return replace(
        _fallible(StringType(), BinaryType(), _bytes),
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
        _fallible(StringType(), lake, lambda value: _bytes(value).cast("string").cast(lake)),
        is_placeholder=lambda value: value == PLACEHOLDER_BASE64,
    )


def _bytes(value: Column) -> Column:
    """Return the decoded bytes; null if the text is not base64, for which `unbase64` would fail the job."""
    return F.try_to_binary(value, F.lit("base64"))


@dataclass(frozen=True)
class _SourceType:
    """A column's type in its database, as Debezium reports it (`column.propagate.source.type`).

    The name of the type or domain is in upper case. The length is what the type was declared with, or one of
    the driver's own."""

    name: str
    length: int
    scale: int | None


def _source_type(schema: ConnectSchema) -> _SourceType | None:
    name, length = schema.parameter(SOURCE_TYPE), schema.parameter(SOURCE_LENGTH)
    scale = schema.parameter(SOURCE_SCALE)
    if name is None or length is None:
        return None
    return _SourceType(name, int(length), None if scale is None else int(scale))


_DECIMALS_WITH_LENGTH = ("DECIMAL", "FIXED", "DEC")
"""What MySQL, MariaDB and SQL Server call a decimal, perhaps with `UNSIGNED`, `ZEROFILL` or `IDENTITY` behind
it. It always has a length."""

_UNDECLARED_LENGTHS = (0, 131_089)
"""The lengths of a numeric without a precision: in a column, and in a domain or an array."""


def _number_as_text(source: _SourceType | None) -> Conversion | None:
    """Return the conversion of a number that is sent as text; None if the text may be something else.

    A domain has its own name. Its scale shows that it is a domain over numeric, because no text type has a
    scale. So does the length of a numeric without a precision. A domain over numeric(p,0) looks like one over
    varchar(p), and so stays text."""
    if source is None:
        return None
    if source.name == "MONEY" and not source.scale:
        return _decimal_from_text(MAX_DECIMAL_PRECISION, 2)
    # SQL Server calls one with IDENTITY `numeric() identity`.
    words = source.name.split(" ")
    name = words[0].removesuffix("()")
    if name in _DECIMALS_WITH_LENGTH or (name == "NUMERIC" and len(words) > 1):
        return _decimal_from_text(source.length, source.scale or 0)
    is_numeric = source.name == "NUMERIC"
    if source.length in _UNDECLARED_LENGTHS and not source.scale:
        return _digits()
    if is_numeric or source.scale:
        return _decimal_from_text(source.length, source.scale or 0)
    return None


def _decimal_from_text(precision: int, scale: int) -> Conversion:
    precision, scale = _as_decimal(precision, scale)
    if precision > MAX_DECIMAL_PRECISION:
        return _digits()
    data_type = DecimalType(precision, scale)
    has_more_places = rf"\.\d{{{scale}}}0*[1-9]"

    def has_failed(value: Column) -> Column:
        return value.isNotNull() & (value.cast(data_type).isNull() | value.rlike(has_more_places))

    return Conversion(StringType(), data_type, lambda value: value.cast(data_type), has_failed=has_failed)


def _as_decimal(precision: int, scale: int) -> tuple[int, int]:
    """Return precision and scale of the decimal type that holds a numeric(precision, scale).

    The scale of a numeric may be negative or larger than its precision."""
    scale = _signed(scale)
    return (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)


def _signed(scale: int) -> int:
    """Return the scale with its sign. PostgreSQL's driver reads the signed 11 bits as an unsigned number."""
    return scale - 2_048 if scale >= 1_024 else scale


def _digits() -> Conversion:
    """Convert a number to text with all its digits and no trailing zeros: equal numbers are equal texts."""

    def to_lake(value: Column) -> Column:
        # Debezium sends the names of its own enumeration (io.debezium.data.SpecialValueDecimal).
        return (
            F.when(value == "NAN", "NaN")
            .when(value == "POSITIVE_INFINITY", "Infinity")
            .when(value == "NEGATIVE_INFINITY", "-Infinity")
            .otherwise(_trimmed(value))
        )

    return Conversion(StringType(), StringType(), to_lake, lambda value: value == PLACEHOLDER)


def _trimmed(digits: Column) -> Column:
    """Remove zeros behind the last digit after the point, and a point behind the last digit."""
    return F.regexp_replace(digits, r"(\.\d*[1-9])0+$|\.0*$", "$1")


def _decimal(schema: ConnectSchema) -> Conversion:
    declared = int(schema.parameter("connect.decimal.precision") or MAX_DECIMAL_PRECISION)
    declared_scale = _signed(int(schema.parameter("scale") or 0))
    precision, scale = _as_decimal(declared, declared_scale)
    if abs(declared_scale) > _LARGEST_SCALE:
        raise UnsupportedType(
            what="A column of numbers has a scale that no database has",
            found=f"numeric({declared},{declared_scale})",
            expected=f"at most {_LARGEST_SCALE:,} decimal places",
            remedy="Leave the column out of the connector (column.exclude.list).",
        )
    is_in_base64 = WRITTEN_AS_BASE64 in schema.parameters

    def text_of_bytes(value: Column) -> Column:
        number = _decimal_text(F.struct(F.lit(scale).alias("scale"), value.alias("value")))
        return number if declared_scale >= 0 else F.concat(number, F.lit("0" * -declared_scale))

    if precision > MAX_DECIMAL_PRECISION:
        if is_in_base64:
            return _fallible(StringType(), StringType(), lambda value: _trimmed(text_of_bytes(value)))
        return _fallible(StringType(), StringType(), _digits_of_number)
    lake = DecimalType(precision, scale)
    if is_in_base64:
        return _fallible(StringType(), lake, lambda value: text_of_bytes(value).cast(lake))
    return _as_it_is(lake)


_LARGEST_SCALE = 16_383
_LONGEST_EXPONENT = 5
"""The digits of an exponent.

PostgreSQL has the longest numbers: 131,072 digits before the point and 16,383 after it."""


def _digits_of_number(number: Column) -> Column:
    """Return a JSON number with all its digits, as `_digits` writes it; null for any other text.

    Java writes some numbers with an exponent (BigDecimal#toString)."""
    parts = rf"^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{{1,{_LONGEST_EXPONENT}}}))?$"
    sign, whole, fraction, exponent = (F.regexp_extract(number, parts, group) for group in range(1, 5))
    power = F.coalesce(exponent.cast("int"), F.lit(0))
    digits, point = F.concat(whole, fraction), F.length(whole) + power
    zeros_before = F.call_function("repeat", F.lit("0"), 1 - point)
    zeros_after = F.call_function("repeat", F.lit("0"), point - F.length(digits))
    padded, place = F.concat(zeros_before, digits, zeros_after), F.greatest(point, F.lit(1))
    before_point = F.regexp_replace(padded.substr(F.lit(1), place), "^0+(?=.)", "")
    written = F.concat(before_point, F.lit("."), padded.substr(place + 1, F.length(padded)))
    return F.when(number.rlike(parts), _trimmed(F.concat(sign, written)))


def _variable_scale_decimal(_: ConnectSchema) -> Conversion:
    """Convert a numeric without a precision to text.

    Each value has its own scale, which only text holds exactly. Values with more than 38 digits cannot be
    converted."""
    wire = StructType([StructField("scale", IntegerType()), StructField("value", StringType())])
    return _fallible(wire, StringType(), _decimal_text)


def _decimal_text(value: Column) -> Column:
    """Return a decimal's text from its scale and its two's-complement integer; null if it is too long."""
    whole = DecimalType(MAX_DECIMAL_PRECISION, 0)
    digits = F.hex(_bytes(value["value"]))
    is_negative = digits.substr(1, 1) >= "8"
    scale = value["scale"]

    def add_byte(total: Column, number: Column) -> Column:
        byte = F.conv(digits.substr(2 * number - 1, F.lit(2)), 16, 10).cast("int")
        # The code uses the complement: -x is the complement of x, plus one. So no power of two beyond the
        # value itself has to fit.
        return (total * 256 + F.when(is_negative, 255 - byte).otherwise(byte)).cast(whole)

    def as_text(total: Column) -> Column:
        magnitude = F.when(is_negative, total + 1).otherwise(total).cast(whole).cast("string")
        padded = F.call_function("lpad", magnitude, scale + MAX_DECIMAL_PRECISION, F.lit("0"))
        before_point = padded.substr(F.lit(1), F.length(padded) - scale)
        after_point = F.when(scale > 0, F.concat(F.lit("."), F.right(padded, scale))).otherwise("")
        sign = F.when(is_negative, "-").otherwise("")
        return F.concat(sign, F.regexp_replace(before_point, "^0+(?=.)", ""), after_point)

    bytes_of_value = F.sequence(F.lit(1), (F.length(digits) / 2).cast("int"))
    text = F.aggregate(bytes_of_value, F.lit(0).cast(whole), add_byte, as_text)
    return F.when(scale.between(0, _LARGEST_SCALE), text)


def _zoned_timestamp(_: ConnectSchema) -> Conversion:
    def to_lake(value: Column) -> Column:
        return (
            F.when(value == "infinity", F.timestamp_micros(F.lit(_INFINITE_MICROS)))
            # Debezium sends the latter for one in an array (an overflow, measured with 3.6.3).
            .when(
                (value == "-infinity") | value.startswith("+292269055-12-02T23:00:00"),
                F.timestamp_micros(F.lit(-_INFINITE_MICROS)),
            )
            .otherwise(value.cast(TimestampType()))
        )

    return _fallible(StringType(), TimestampType(), to_lake)


def _interval(_: ConnectSchema) -> Conversion:
    """ISO 8601, as Debezium sends it. A double rounds some seconds: 12.425070999 for 12.425071."""
    seconds = r"-?\d+\.\d+(?=S$)"

    def to_lake(value: Column) -> Column:
        exact = F.round(F.regexp_extract(value, seconds, 0).cast("decimal(12,9)"), 6).cast("string")
        trimmed = F.regexp_replace(exact, r"\.?0+$", "")
        repaired = F.concat(F.regexp_replace(value, seconds + "S$", ""), trimmed, F.lit("S"))
        return F.when(value.rlike(r"\.\d{7,}S$"), repaired).otherwise(value)

    return Conversion(StringType(), StringType(), to_lake)


def _time_of_day(microseconds: Convert, wire: DataType) -> Conversion:
    """Convert a time of day to text, `HH:MM:SS.ffffff`, because Spark has no type for it.

    MySQL's and MariaDB's TIME is from -838 to 838 hours."""

    def to_text(value: Column) -> Column:
        signed = microseconds(value)
        micros = F.abs(signed)
        seconds = F.floor(micros % _MICROSECONDS_PER_HOUR / 1_000_000)
        return F.format_string(
            "%s%02d:%02d:%02d.%06d",
            F.when(signed < 0, "-").otherwise(""),
            F.floor(micros / _MICROSECONDS_PER_HOUR),
            F.floor(seconds / 60),
            seconds % 60,
            micros % 1_000_000,
        )

    return Conversion(wire, StringType(), lambda value: F.when(value.isNotNull(), to_text(value)))


def _array(column: str, schema: ConnectSchema, items: ConnectSchema) -> Conversion:
    item = _number_in_array(schema, items) or conversion(column, items)
    to_lake: Convert = _same if item.to_lake is _same else (lambda value: F.transform(value, item.to_lake))
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
    source = _source_type(schema)
    if items.type != "string" or source is None or source.name != "_NUMERIC":
        return None
    return _number_as_text(replace(source, name="NUMERIC"))


def _is_uuid(schema: ConnectSchema) -> bool:
    return schema.name == "io.debezium.data.Uuid"


def _map(column: str, values: ConnectSchema) -> Conversion:
    value = conversion(column, values)
    data_type = MapType(StringType(), value.lake)

    def is_placeholder(found: Column) -> Column:
        return F.map_keys(found) == F.array(F.lit(PLACEHOLDER))

    return Conversion(MapType(StringType(), value.wire), data_type, _same, is_placeholder)


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


_INFINITE_DAYS = 2**31 - 1
_INFINITE_MICROS = 2**63 - 1
"""Infinity in the lake, and negated for -infinity: the largest number of the type, as in DuckDB."""


@dataclass(frozen=True)
class _Moments:
    """The numbers that Debezium sends for values of a type.

    Finite values are from `first` to `last`, as far as both PostgreSQL's type and the lake's can hold them.
    Some other numbers stand for either infinity (PostgresValueConverter.POSITIVE_INFINITY_…)."""

    first: int
    last: int
    infinity: tuple[int, ...]
    minus_infinity: tuple[int, ...]

    def converted(self, finite: Convert, infinite: int, lake: Convert) -> Convert:
        """Convert to the lake's type: numbers by `finite`, and infinities to `infinite`."""
        return lambda value: (
            F.when(value.isin(*self.infinity), lake(F.lit(infinite)))
            .when(value.isin(*self.minus_infinity), lake(F.lit(-infinite)))
            .when(value.between(self.first, self.last), finite(value))
        )


# PostgreSQL begins with the Julian day 0. It ends dates in the year 5874897, and moments in 294276, months
# after 64 bits of microseconds do. Debezium sends infinities as its overflows turn them out, measured:
# a streamed day by 3.7.0, by 3.6.3, and the day of a snapshot by both; smaller units by 3.7.0, and by
# 3.6.3.
_DAYS = _Moments(
    -2_440_588,
    2_145_042_905,
    infinity=(2_146_033_979, -2_147_472_692, -622_191_234),
    minus_infinity=(-2_147_472_691, -625_821_272),
)
_MICROS = _Moments(
    -210_866_803_200_000_000,
    _INFINITE_MICROS - 1,
    infinity=(2**63 - 1, 9_223_372_036_825_200_000),
    minus_infinity=(-(2**63), -9_223_372_036_832_400_000),
)
_MILLIS = _Moments(
    _MICROS.first // 1_000,
    _MICROS.last // 1_000,
    infinity=(9_223_372_036_825_200_000, 9_223_372_036_825_200),
    minus_infinity=(-9_223_372_036_832_400_000, -9_223_372_036_832_400),
)


def _micros_of(nanos: Column) -> Column:
    """Return whole microseconds, rounded down, also before 1970."""
    return F.call_function("div", nanos - F.pmod(nanos, F.lit(1_000)), F.lit(1_000))


_DATE = _fallible(
    IntegerType(), DateType(), _DAYS.converted(F.date_from_unix_date, _INFINITE_DAYS, F.date_from_unix_date)
)
_TIMESTAMP_MILLIS = _fallible(
    LongType(), TimestampType(), _MILLIS.converted(F.timestamp_millis, _INFINITE_MICROS, F.timestamp_micros)
)
_TIMESTAMP_MICROS = _fallible(
    LongType(), TimestampType(), _MICROS.converted(F.timestamp_micros, _INFINITE_MICROS, F.timestamp_micros)
)
_TIMESTAMP_NANOS = _fallible(LongType(), TimestampType(), lambda value: F.timestamp_micros(_micros_of(value)))
_TIME_NANOS = _time_of_day(lambda nanos: _micros_of(nanos), LongType())
_TIME_MILLIS = _time_of_day(lambda millis: millis.cast("bigint") * 1_000, IntegerType())
_TIME_MICROS = _time_of_day(_same, LongType())

_SEMANTIC: dict[str, Callable[[ConnectSchema], Conversion]] = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "org.apache.kafka.connect.data.Date": lambda _: _DATE,
    "org.apache.kafka.connect.data.Time": lambda _: _TIME_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": lambda _: _TIMESTAMP_MILLIS,
    "io.debezium.data.Enum": _enum,
    "io.debezium.data.VariableScaleDecimal": _variable_scale_decimal,
    "io.debezium.time.Date": lambda _: _DATE,
    "io.debezium.time.Interval": _interval,
    "io.debezium.time.Time": lambda _: _TIME_MILLIS,
    "io.debezium.time.MicroTime": lambda _: _TIME_MICROS,
    "io.debezium.time.Timestamp": lambda _: _TIMESTAMP_MILLIS,
    "io.debezium.time.MicroTimestamp": lambda _: _TIMESTAMP_MICROS,
    "io.debezium.time.NanoTime": lambda _: _TIME_NANOS,
    "io.debezium.time.NanoTimestamp": lambda _: _TIMESTAMP_NANOS,
    "io.debezium.time.ZonedTimestamp": _zoned_timestamp,
}
