"""How Debezium sends decimals: as text with the type in the schema, as JSON numbers, or in base64."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, IntegerType, StringType, StructField, StructType

from spark_app.wire.connect_schema import WRITTEN_AS_BASE64, ConnectSchema
from spark_app.wire.conversion import (
    Conversion,
    SourceType,
    UnsupportedType,
    as_it_is,
    decoded_base64,
    fallible,
)
from tributary.contract.unchanged_value import PLACEHOLDER

MAX_DECIMAL_PRECISION = 38

_DECIMALS_WITH_LENGTH = ("DECIMAL", "FIXED", "DEC")
"""What MySQL, MariaDB and SQL Server call a decimal, perhaps with `UNSIGNED`, `ZEROFILL` or `IDENTITY` behind
it. It always has a length."""

_UNDECLARED_LENGTHS = (0, 131_089)
"""The lengths of a numeric without a precision: in a column, and in a domain or an array."""


def number_as_text(source: SourceType | None) -> Conversion | None:
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


def decimal(schema: ConnectSchema) -> Conversion:
    """Convert Connect's own Decimal: a JSON number, or the bytes of its digits in base64."""
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
            return fallible(StringType(), StringType(), lambda value: _trimmed(text_of_bytes(value)))
        return fallible(StringType(), StringType(), _digits_of_number)
    lake = DecimalType(precision, scale)
    if is_in_base64:
        return fallible(StringType(), lake, lambda value: text_of_bytes(value).cast(lake))
    return as_it_is(lake)


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


def variable_scale_decimal(_: ConnectSchema) -> Conversion:
    """Convert a numeric without a precision to text.

    Each value has its own scale, which only text holds exactly. Values with more than 38 digits cannot be
    converted."""
    wire = StructType([StructField("scale", IntegerType()), StructField("value", StringType())])
    return fallible(wire, StringType(), _decimal_text)


def _decimal_text(value: Column) -> Column:
    """Return a decimal's text from its scale and its two's-complement integer; null if it is too long."""
    whole = DecimalType(MAX_DECIMAL_PRECISION, 0)
    digits = F.hex(decoded_base64(value["value"]))
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
