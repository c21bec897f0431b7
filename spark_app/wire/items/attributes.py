"""Attributes: a typed value of an item, the lake's type for it, and its value in a column of that type."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
)

from spark_app.wire.items.numbers import NotANumber, number, number_text, number_type, wider_number

Attribute = Mapping[str, Any]
"""One entry, the type's letters and the value: `{"S": "text"}`, `{"NS": ["1", "2"]}`, `{"NULL": true}`."""

Item = Mapping[str, Attribute]


class NotAnAttribute(ValueError):
    """A value that is not in DynamoDB's form."""


class DoesNotFit(ValueError):
    """A value that a column's type does not hold."""


def attribute_type(attribute: Attribute) -> DataType | None:
    """Return the type of a column that such a value begins with; None for NULL.

    Lists and maps are JSON. Raises `NotAnAttribute`."""
    kind, value = _kind(attribute)
    match kind:
        case "NULL":
            return None
        case "S" | "L" | "M":
            plain_json(attribute)
            return StringType()
        case "N":
            return number_type(_number(value))
        case "BOOL":
            return BooleanType()
        case "B":
            _bytes(value)
            return BinaryType()
        case "SS":
            [_text(each) for each in _values(value)]
            return ArrayType(StringType())
        case "BS":
            [_bytes(each) for each in _values(value)]
            return ArrayType(BinaryType())
        case "NS":
            types = [number_type(_number(each)) for each in _values(value)]
            return ArrayType(widest(*types) if types else LongType())
        case _:
            raise NotAnAttribute(kind)


def widest(*types: DataType) -> DataType:
    """Return the type whose columns hold the values of all these types. Text holds every value."""
    first, *others = types
    for other in others:
        first = _wider(first, other)
    return first


def _wider(one: DataType, other: DataType) -> DataType:
    if one == other:
        return one
    if (numbers := wider_number(one, other)) is not None:
        return numbers
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_wider(one.elementType, other.elementType))
    return StringType()


def value_of(attribute: Attribute, data_type: DataType) -> Any:
    """Return the attribute's value in a column of this type; None for NULL.

    Sets have the order of their values. Raises `DoesNotFit` and `NotAnAttribute`."""
    kind, value = _kind(attribute)
    if kind == "NULL":
        return None
    if isinstance(data_type, StringType):
        return _text(value) if kind == "S" else text_of(attribute)
    if isinstance(data_type, ArrayType) and kind in ("SS", "NS", "BS"):
        values = [_scalar(kind[0], each, data_type.elementType) for each in _values(value)]
        return sorted(values)
    return _scalar(kind, value, data_type)


def _scalar(kind: str, value: Any, data_type: DataType) -> Any:
    match kind, data_type:
        case "S", StringType():
            return _text(value)
        case "N", StringType():
            return number_text(_number(value))
        case "B", StringType():
            return base64.b64encode(_bytes(value)).decode()
        case "N", LongType():
            if isinstance(value, str) and len(value) <= _DIGITS_OF_ANY_LONG and _is_digits(value):
                return int(value)
            found = _number(value)
            if found != found.to_integral_value() or not -(2**63) <= found < 2**63:
                raise DoesNotFit(value)
            return int(found)
        case "N", DecimalType():
            return _decimal(_number(value), data_type)
        case "N", DoubleType():
            return float(_number(value))
        case "BOOL", BooleanType():
            return _bool(value)
        case "B", BinaryType():
            return bytearray(_bytes(value))
        case _:
            raise DoesNotFit(kind)


_DIGITS_OF_ANY_LONG = 18


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def text_of(attribute: Attribute) -> str | None:
    """Return the value as text, which identifies it; None for NULL.

    Binary values are in base64. Sets, lists and maps are JSON."""
    kind, value = _kind(attribute)
    match kind:
        case "NULL":
            return None
        case "S":
            return _text(value)
        case "B":
            return base64.b64encode(_bytes(value)).decode()
        case _:
            return plain_json(attribute)


def plain_json(attribute: Attribute) -> str:
    """Return the value as JSON without DynamoDB's types: `{"tags":["a","b"],"total":10.5}`.

    Names and sets are sorted, so that one value has one text. Binary values are in base64, and numbers have
    all their digits. Raises `NotAnAttribute`."""
    kind, value = _kind(attribute)
    match kind:
        case "NULL":
            return "null"
        case "S":
            return json_text(_text(value))
        case "N":
            return number_text(_number(value))
        case "BOOL":
            return "true" if _bool(value) else "false"
        case "B":
            return json_text(base64.b64encode(_bytes(value)).decode())
        case "SS":
            return _json_list([json_text(each) for each in sorted(map(_text, _values(value)))])
        case "NS":
            return _json_list([number_text(each) for each in sorted(map(_number, _values(value)))])
        case "BS":
            found = [base64.b64encode(each).decode() for each in sorted(map(_bytes, _values(value)))]
            return _json_list([json_text(each) for each in found])
        case "L":
            return _json_list([plain_json(each) for each in _values(value)])
        case "M":
            return json_of_item(value)
        case _:
            raise NotAnAttribute(kind)


def json_of_item(item: Any) -> str:
    """Return an item, or the value of a map, as JSON. Raises `NotAnAttribute`."""
    if not isinstance(item, dict):
        raise NotAnAttribute(repr(item))
    members = (f"{json_text(name)}:{plain_json(item[name])}" for name in sorted(item))
    return "{" + ",".join(members) + "}"


json_text: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
"""Returns a text as JSON."""


def _json_list(values: Sequence[str]) -> str:
    return "[" + ",".join(values) + "]"


def _kind(attribute: Any) -> tuple[str, Any]:
    # Every item is JSON, so it has no other mappings. Python compares with `Mapping` slowly.
    if not isinstance(attribute, dict) or len(attribute) != 1:
        raise NotAnAttribute(repr(attribute))
    ((kind, value),) = attribute.items()
    return kind, value


def _values(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise NotAnAttribute(repr(value))
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or (not value.isascii() and _has_surrogate(value)):
        raise NotAnAttribute(repr(value))
    return value


def _has_surrogate(text: str) -> bool:
    """Return whether the text holds half of a pair, as JSON can, but no UTF-8."""
    return any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotAnAttribute(repr(value))
    return value


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise NotAnAttribute(repr(value)) from error


def _number(value: Any) -> Decimal:
    try:
        return number(value)
    except NotANumber as error:
        raise NotAnAttribute(repr(value)) from error


def _decimal(value: Decimal, data_type: DecimalType) -> Decimal:
    _, digits, power = value.as_tuple()
    exponent = int(power)
    whole = len(digits) + exponent
    if value and (-exponent > data_type.scale or whole > data_type.precision - data_type.scale):
        raise DoesNotFit(str(value))
    return value
