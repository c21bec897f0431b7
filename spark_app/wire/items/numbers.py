"""DynamoDB's numbers: 38 digits at most, and which type of the lake holds several of them exactly."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

from pyspark.sql.types import DataType, DecimalType, LongType, StringType

MOST_DIGITS = 38
_WHOLE_DIGITS = (20, 26, 32, 38)
_STEP = 6
"""A column's digits grow in steps, because Tributary rewrites the table each time its type changes."""

_EXACT = Context(prec=400)
"""Numbers go from 1E-130 to 9.9E+125, so this many digits hold the sum of any two."""

_ZERO = Decimal(0)


class NotANumber(ValueError):
    """A text that is no number."""


def number(text: object) -> Decimal:
    """Return the number without zeros at its end. Raises `NotANumber`."""
    try:
        found = Decimal(str(text)) if isinstance(text, str) else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite():
        raise NotANumber(repr(text))
    # There is one zero: -0 is equal to it, and would have another text.
    return _EXACT.normalize(found) or _ZERO


def number_text(value: Decimal) -> str:
    """Return the one text of a number that `number` has returned: `0.5`, `1200`, `1E+40`."""
    digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
    is_short = exponent >= -MOST_DIGITS and len(digits) + exponent <= MOST_DIGITS
    return format(value, "f") if is_short else format(value, "E")


def number_type(value: Decimal) -> DataType:
    """Return the type that a column of such numbers begins with.

    Whole numbers of up to 64 bits are `bigint`. Others are decimals, or text if they have too many digits."""
    digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
    whole, scale = max(0, len(digits) + exponent), max(0, -exponent)
    if scale == 0 and -(2**63) <= value < 2**63:
        return LongType()
    scale = -(-scale // _STEP) * _STEP
    # Few digits before the point leave more of the 38 for those after it.
    room = MOST_DIGITS - scale
    wanted = next((step for step in _WHOLE_DIGITS if step >= whole), MOST_DIGITS + 1)
    return decimal_type(room if whole <= room < wanted else wanted, scale)


def decimal_type(whole: int, scale: int) -> DataType:
    """Return the decimal with this many digits before and after the point, or text if there is none."""
    is_decimal = scale <= MOST_DIGITS and whole >= 0 and whole + scale <= MOST_DIGITS
    return DecimalType(whole + scale, scale) if is_decimal else StringType()


def wider_number(one: DataType, other: DataType) -> DataType | None:
    """Return the type that holds the numbers of both types; None if one of them is no type of numbers."""
    if one == other and isinstance(one, LongType):
        return one
    sizes = [_size(one), _size(other)]
    if None in sizes:
        return None
    (whole, scale), (other_whole, other_scale) = (size for size in sizes if size is not None)
    return decimal_type(max(whole, other_whole), max(scale, other_scale))


def _size(data_type: DataType) -> tuple[int, int] | None:
    match data_type:
        case LongType():
            return _WHOLE_DIGITS[0], 0
        case DecimalType():
            return data_type.precision - data_type.scale, data_type.scale
        case _:
            return None
