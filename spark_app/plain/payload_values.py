"""Turn the JSON of a payload into a value of a Spark type. A value of another type becomes null."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from spark_app.plain.json_text import Member, NotJson, Number, as_unicode, elements, members, read_json
from spark_app.steps.payloads import MISMATCH, NOT_UTF8, ClosedStruct

_SPECIAL = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "+Infinity": float("inf"),
    "INF": float("inf"),
    "+INF": float("inf"),
    "-Infinity": float("-inf"),
    "-INF": float("-inf"),
}
"""Numbers for which JSON has no digits, as Connect's JsonConverter and Spark write them."""
_MOST_PLACES = 1_000
_EXACT = Context(prec=10_000, Emax=10**9, Emin=-(10**9))


@dataclass
class Findings:
    """What was found in a payload apart from its values."""

    has_mismatch: bool = False
    has_unnamed: bool = False
    names: set[str] = field(default_factory=set)


_Reader = Callable[[Member, str, Findings], Any]
"""Reads a member of a document (its text); null if the value has another type."""


class PayloadReader:
    """Reads payloads of the type `wire`, as `spark_app.steps.steps.Steps.read_payload` describes it."""

    def __init__(self, wire: StructType, closed: ClosedStruct | None, names: Sequence[str] = ()) -> None:
        of_closed = None if closed is None else re.compile(closed.ignored or "(?!)")
        inner = {closed.field: of_closed} if closed is not None and closed.field else {}
        readers = {
            column.name: _struct(column.dataType, inner[column.name])
            if column.name in inner and isinstance(column.dataType, StructType)
            else _reader(column.dataType)
            for column in wire.fields
        }
        is_whole_closed = closed is not None and not closed.field
        self._root = _Struct(readers, of_closed if is_whole_closed else None, frozenset(names))

    def read(self, value: bytes) -> tuple[tuple[Any, str | None, bool], Findings, bool]:
        """Return (payload, problem, has_unnamed), the findings, and whether the bytes are a JSON object."""
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            return (None, NOT_UTF8, False), Findings(), True
        findings = Findings()
        try:
            document = read_json(text)
        except NotJson:
            return (None, MISMATCH, False), findings, False
        if not isinstance(document, dict):
            return (None, MISMATCH, False), findings, False
        start = text.index("{")
        payload = self._root(Member("", document, start, len(text)), text, findings)
        problem = MISMATCH if findings.has_mismatch else None
        return (payload, problem, findings.has_unnamed), findings, True


@dataclass(frozen=True)
class _Struct:
    readers: dict[str, _Reader]
    ignored: re.Pattern[str] | None
    names: frozenset[str] = frozenset()

    def __call__(self, member: Member, text: str, findings: Findings) -> tuple[Any, ...] | None:
        if not isinstance(member.value, dict):
            return None
        if self.names:
            findings.names |= self.names & member.value.keys()
        if self.ignored is not None:
            unnamed = member.value.keys() - self.readers.keys()
            findings.has_unnamed |= any(self.ignored.fullmatch(name) is None for name in unnamed)
        found = dict.fromkeys(self.readers)
        for each in self._members(member, text):
            if each.name in found:
                found[each.name] = _read(self.readers[each.name], each, text, findings)
        return tuple(found.values())

    def _members(self, member: Member, text: str) -> Sequence[Member]:
        """Return the members, with their places in the text only if a value's own text may be asked for."""
        if any(isinstance(value, dict | list) for value in member.value.values()):
            return list(members(text, member.start))
        return [Member(name, value, -1, -1) for name, value in member.value.items()]


def _read(reader: _Reader, member: Member, text: str, findings: Findings) -> Any:
    if member.value is None:
        return None
    value = reader(member, text, findings)
    findings.has_mismatch |= value is None
    return value


def _reader(data_type: DataType) -> _Reader:
    match data_type:
        case StructType():
            return _struct(data_type, None)
        case ArrayType():
            return _array(_reader(data_type.elementType))
        case MapType():
            return _map(_reader(data_type.valueType))
        case StringType():
            return _text
        case LongType():
            return _whole(63)
        case IntegerType():
            return _whole(31)
        case BooleanType():
            return lambda member, _text, _findings: member.value if isinstance(member.value, bool) else None
        case DoubleType() | FloatType():
            return _float
        case DecimalType():
            return _decimal(data_type.precision, data_type.scale)
    raise ValueError(f"No payload holds values of type {data_type.simpleString()}")


def _struct(data_type: StructType, ignored: re.Pattern[str] | None) -> _Reader:
    return _Struct({column.name: _reader(column.dataType) for column in data_type.fields}, ignored)


def _array(reader: _Reader) -> _Reader:
    def read(member: Member, text: str, findings: Findings) -> list[Any] | None:
        if not isinstance(member.value, list):
            return None
        if any(isinstance(value, dict | list) for value in member.value):
            found = list(elements(text, member.start))
        else:
            found = [Member("", value, -1, -1) for value in member.value]
        return [_read(reader, each, text, findings) for each in found]

    return read


def _map(reader: _Reader) -> _Reader:
    def read(member: Member, text: str, findings: Findings) -> dict[str, Any] | None:
        if not isinstance(member.value, dict):
            return None
        found = members(text, member.start)
        return {as_unicode(each.name): _read(reader, each, text, findings) for each in found}

    return read


def _text(member: Member, text: str, _findings: Findings) -> str:
    match member.value:
        case bool():
            return "true" if member.value else "false"
        case dict() | list():
            return text[member.start : member.end]
    return as_unicode(str(member.value))


def _whole(bits: int) -> _Reader:
    def read(member: Member, _text: str, _findings: Findings) -> int | None:
        if not isinstance(member.value, Number) or not member.value.is_whole:
            return None
        number = int(member.value) if len(member.value) <= 20 else 1 << bits
        return number if -(1 << bits) <= number < 1 << bits else None

    return read


def _float(member: Member, _text: str, _findings: Findings) -> float | None:
    if isinstance(member.value, Number):
        return float(member.value)
    return _SPECIAL.get(member.value) if isinstance(member.value, str) else None


def _decimal(precision: int, scale: int) -> _Reader:
    unit = Decimal(1).scaleb(-scale)

    def read(member: Member, _text: str, _findings: Findings) -> Decimal | None:
        if not isinstance(member.value, Number):
            return None
        try:
            number = _EXACT.create_decimal(member.value)
        except InvalidOperation:
            return None
        exponent = number.as_tuple().exponent
        # A few characters can stand for a number with a billion digits.
        if not isinstance(exponent, int) or abs(exponent) > _MOST_PLACES:
            return None
        if number and number.adjusted() + 1 > precision - scale:
            return None
        scaled = number.quantize(unit, rounding=ROUND_HALF_UP, context=_EXACT)
        return scaled if len(scaled.as_tuple().digits) <= precision else None

    return read
