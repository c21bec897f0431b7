"""Read the usual payloads with Spark's own functions, and say which payloads need a closer look.

`from_json` reads most payloads as `PayloadReader` does, and much faster. But it changes some values without a
word: where a text is wanted, it writes a number or an object in another form. It also ignores whatever
follows the document. So every payload for which that is possible counts as doubtful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark_app.steps.payloads import ClosedStruct, ReadableShape

_CORRUPT = "__tributary_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
}
_SIMPLE = (StringType, LongType, IntegerType, BooleanType, DoubleType)
_HUGE = "[0-9.][eE][-+]?[0-9]{3}"
"""Numbers that would have a thousand digits or more as a decimal, which could take any time."""
_TEXTS = r'"[^"\\\uFFFD]*+(?:\\.[^"\\\uFFFD]*+)*+"'
"""The texts in JSON, but those with a U+FFFD: Java reads bytes that are not UTF-8 as this character.

The possessive quantifiers keep Java's matcher from a recursion for each character."""
_CHANGED = "[0-9][.eE]|-0|[NI]"
"""Numbers that `from_json` writes in another form where a text is wanted."""
_NUMBER_AS_TEXT = r'"(?:[-+.,eE0-9]|\\u00[0-9a-fA-F]{2})+"'
"""Texts in JSON from which Spark reads a decimal (ExprUtils.getDecimalParser drops commas)."""
_LIKE_A_NUMBER = "^[-+]?(?:0|[0-9]+[.eE][-+.eE0-9]*|NaN|INF|Infinity)$"
"""Texts that `from_json` turns such numbers into. It writes one with a point or an exponent as a double."""


@dataclass(frozen=True)
class UsualPayload:
    """A payload as `from_json` reads it. Both are null if the text is null.

    value        the result of `read_payload`
    is_doubtful  whether `value` may be wrong
    """

    value: Column
    is_doubtful: Column


def open_payload(text: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
    """Return `struct<text string, …>`, the costly parts of reading a payload.

    Only the text is there if the type has parts that `from_json` reads otherwise."""
    string = text.cast("string")
    if not _is_usual(wire):
        return F.when(string.isNotNull(), F.struct(string.alias("text")))
    as_numbers = _decimals_as_doubles(wire)
    # Each regular expression costs as much as a part of the parsing. So the usual payload meets one.
    has_special_number = string.rlike(f"{_HUGE}|{_NUMBER_AS_TEXT}")
    is_readable = ~(has_special_number & string.rlike(_HUGE))
    readable = F.when(is_readable, string) if as_numbers.fields else string
    # Spark takes the text "1.5" for a decimal, but not for a double.
    has_such_text = F.when(has_special_number, _parsed(readable, as_numbers)[_CORRUPT].isNotNull())
    as_doubles = [F.coalesce(has_such_text, F.lit(False))] if as_numbers.fields else []
    unnamed = [] if closed is None else [_has_unnamed(string, wire, closed)]
    # Without a condition around them, Spark computes equal parts once.
    return F.struct(
        string.alias("text"),
        _parsed(readable, wire).alias("read"),
        F.regexp_replace(string, _TEXTS, '"').alias("bare"),
        *(is_corrupt.alias("has_text_for_number") for is_corrupt in as_doubles),
        *(has_unnamed.alias("has_unnamed") for has_unnamed in unnamed),
    )


def usual_payload(opened: Column, wire: StructType, closed: ClosedStruct | None) -> UsualPayload | None:
    """Return the reading of an opened payload. Return None if only a function in Python can read it."""
    if not _is_usual(wire):
        return None
    text, read = opened["text"], opened["read"]
    payload = F.struct(*[read[name].alias(name) for name in wire.names])
    value = F.when(
        text.isNotNull(),
        F.struct(
            payload.alias("payload"),
            F.lit(None).cast("string").alias("problem"),
            (F.lit(False) if closed is None else opened["has_unnamed"]).alias("has_unnamed"),
        ),
    )
    is_doubtful = _is_doubtful(text, read, opened["bare"], wire)
    if _decimals_as_doubles(wire).fields:
        is_doubtful = is_doubtful | opened["has_text_for_number"]
    return UsualPayload(value, is_doubtful)


def open_shape(text: Column, shapes: Sequence[ReadableShape]) -> Column:
    """Return `struct<text string, NAME struct<…>>` with an opened payload for each shape (`open_payload`).

    The text of a shape that the payload does not have is null."""
    string = text.cast("string")
    names = F.json_object_keys(string)
    number = F.when(_has(names, shapes[0]), F.lit(0))
    for place, shape in enumerate(shapes[1:], 1):
        number = number.when(_has(names, shape), F.lit(place))
    of_shapes = [
        open_payload(F.when(number == place, string), shape.wire, shape.closed).alias(shape.name)
        for place, shape in enumerate(shapes)
    ]
    return F.struct(string.alias("text"), *of_shapes)


def usual_shape(opened: Column, shapes: Sequence[ReadableShape]) -> UsualPayload | None:
    """Return the reading of an opened payload in its shape, like `Steps.read_shape`; else None."""
    values, doubts = [], []
    for shape in shapes:
        of_shape = opened[shape.name]
        usual = usual_payload(of_shape, shape.wire, shape.closed)
        if usual is None:
            return None
        values.append(usual.value.alias(shape.name))
        doubts.append(usual.is_doubtful)
    has_shape = F.coalesce(*[opened[shape.name]["text"] for shape in shapes]).isNotNull()
    is_doubtful = F.when(opened["text"].isNotNull(), F.coalesce(*doubts, F.lit(True)))
    return UsualPayload(F.when(has_shape, F.struct(*values)), is_doubtful)


def _is_usual(wire: StructType) -> bool:
    return bool(wire.fields) and _is_readable(wire)


def _is_readable(data_type: DataType) -> bool:
    match data_type:
        case StructType():
            return all(_is_readable(field.dataType) for field in data_type.fields)
        case ArrayType():
            return isinstance(data_type.elementType, _SIMPLE)
    return isinstance(data_type, (*_SIMPLE, DecimalType))


def _parsed(text: Column, wire: StructType) -> Column:
    return F.from_json(text, StructType([*wire.fields, StructField(_CORRUPT, StringType())]), _OPTIONS)


def _decimals_as_doubles(wire: StructType) -> StructType:
    """Return the fields with decimals, at any depth, each decimal as a double."""
    fields = []
    for field in wire.fields:
        if isinstance(field.dataType, DecimalType):
            fields.append(StructField(field.name, DoubleType()))
        elif isinstance(field.dataType, StructType):
            inner = _decimals_as_doubles(field.dataType)
            fields += [StructField(field.name, inner)] if inner.fields else []
    return StructType(fields)


def _is_doubtful(text: Column, read: Column, bare: Column, wire: StructType) -> Column:
    """Return whether the reading may differ from that of `PayloadReader`; null if the text is null.

    `bare` is the JSON without the characters in its texts."""
    opened = _count(bare, "{[")
    parts = [F.when(part.isNotNull(), 1).otherwise(0) for part in _parts(read, wire)]
    is_whole = (
        (opened == reduce(lambda one, other: one + other, parts, F.lit(1)))
        & (_count(bare, "}]") == opened)
        & (bare.endswith("}") | bare.rlike(r"\}[ \t\n\r]*$"))
    )
    is_changed = bare.rlike(_CHANGED) & _any([*_like_numbers(read, wire)])
    has_halves = text.contains("\\ud") | text.contains("\\uD")
    is_utf8 = ~bare.contains("\ufffd")
    is_usual = read.isNotNull() & read[_CORRUPT].isNull() & is_whole & is_utf8 & ~has_halves & ~is_changed
    return F.when(text.isNotNull(), ~F.coalesce(is_usual, F.lit(False)))


def _parts(read: Column, data_type: StructType) -> Iterator[Column]:
    """Yield the structs and arrays in a struct: each that is not null begins with a bracket."""
    for field in data_type.fields:
        if isinstance(field.dataType, StructType | ArrayType):
            yield read[field.name]
        if isinstance(field.dataType, StructType):
            yield from _parts(read[field.name], field.dataType)


def _like_numbers(read: Column, data_type: StructType) -> Iterator[Column]:
    """Yield whether a text can have been a number in the JSON, for each text in the struct."""
    for field in data_type.fields:
        value = read[field.name]
        match field.dataType:
            case StringType():
                yield _is_like_a_number(value)
            case ArrayType(elementType=StringType()):
                yield F.exists(value, _is_like_a_number)
            case StructType():
                yield from _like_numbers(value, field.dataType)


def _is_like_a_number(value: Column) -> Column:
    # The first character decides for most texts, without a regular expression.
    first = F.ascii(value)
    return (first.between(ord("+"), ord("9")) | first.isin(ord("I"), ord("N"))) & value.rlike(_LIKE_A_NUMBER)


def _has_unnamed(text: Column, wire: StructType, closed: ClosedStruct) -> Column:
    """Return whether the closed struct has a field that the type lacks and that does not count as ignored."""
    named = wire[closed.field].dataType if closed.field else wire
    assert isinstance(named, StructType), "only a struct can be closed"
    found = F.json_object_keys(F.get_json_object(text, f"$.{closed.field}") if closed.field else text)
    more = F.array_except(found, F.array(*map(F.lit, named.names)).cast("array<string>"))
    if closed.ignored is not None:
        more = F.filter(more, lambda name: ~name.rlike(f"^(?:{closed.ignored})$"))
    return F.coalesce(F.size(more) > 0, F.lit(False))


def _has(names: Column, shape: ReadableShape) -> Column:
    return F.size(F.array_intersect(names, F.array(*map(F.lit, shape.names)))) >= shape.least


def _count(text: Column, characters: str) -> Column:
    return F.length(text) - F.length(F.translate(text, characters, ""))


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(
        lambda one, other: one | other, [F.coalesce(c, F.lit(False)) for c in conditions], F.lit(False)
    )
