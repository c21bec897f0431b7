"""Read documents and payloads: usual ones with Spark's functions, and all others with functions in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from spark_app.plain.json_text import Member, NotJson, members
from spark_app.plain.payload_values import PayloadReader
from spark_app.plain.usual_payloads import UsualPayload, usual_payload, usual_shape
from spark_app.steps.payloads import ClosedStruct, ReadableShape

_MOST_STARTS = 16
_SPACE = b" \t\n\r"
_ANOTHER_NAME = re.compile(rb'[ \t\n\r]*\{[ \t\n\r]*"[^sp\\]')
"""The beginning of an object whose first name is certainly neither `schema` nor `payload`."""
_BARE = r'^[ \t\n\r]*\{[ \t\n\r]*"[^sp\\]'
"""The same as `_ANOTHER_NAME`, as a regular expression of Java."""
_ENOUGH_TO_TELL = 32
"""So many characters show the first name, unless there is much white space."""
_PAYLOAD_NEXT = re.compile(r'[ \t\n\r]*,[ \t\n\r]*"payload"[ \t\n\r]*:[ \t\n\r]*(?=.)', re.DOTALL)
_DOCUMENT = StructType(
    [
        StructField("known", IntegerType()),
        StructField("schema", StringType()),
        StructField("payload", StringType()),
    ]
)
_DOCUMENT_OF_BYTES = StructType([*_DOCUMENT.fields[:2], StructField("payload", BinaryType())])


def read_payload(opened: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
    reader = PayloadReader(wire, closed)

    def read(value: bytearray | None) -> tuple[Any, str | None, bool] | None:
        return None if value is None else reader.read(bytes(value))[0]

    return _read_usually(usual_payload(opened, wire, closed), read, _result_type(wire), opened["text"])


def read_shape(opened: Column, shapes: Sequence[ReadableShape]) -> Column:
    names = [name for shape in shapes for name in shape.names]
    readers = [PayloadReader(shape.wire, shape.closed, names) for shape in shapes]
    expected = 0

    def read(value: bytearray | None) -> tuple[Any, ...] | None:
        nonlocal expected
        if value is None:
            return None
        found, findings, is_object = readers[expected].read(bytes(value))
        place = _shape_with(shapes, findings.names) if is_object else None
        if place is None:
            return None
        if place != expected:
            found, _, _ = readers[place].read(bytes(value))
            expected = place
        return tuple(found if number == place else None for number in range(len(shapes)))

    result = StructType([StructField(shape.name, _result_type(shape.wire)) for shape in shapes])
    return _read_usually(usual_shape(opened, shapes), read, result, opened["text"])


def schema_and_payload(text: Column, known: Sequence[str], examples: Sequence[bytes] = ()) -> Column:
    places = {canonical(schema): place for place, schema in reversed(list(enumerate(known)))}
    splitter = _Splitter(places)

    def split(value: bytearray | None) -> _Document | None:
        return None if value is None else splitter.split(bytes(value))

    string = text.cast("string")
    usual = F.when(string.isNull(), None)
    for start, schema in _starts_of(examples, places).items():
        is_such = string.startswith(start.decode()) & _ends_with_payload(text)
        usual = usual.when(is_such, _document(F.lit(places[schema]), F.lit(schema), _after(start, text)))
    is_bare = string.substr(1, _ENOUGH_TO_TELL).rlike(_BARE)
    usual = usual.when(is_bare, _document(F.lit(None), F.lit(None), string))
    # Python could not return a payload that is not UTF-8 as a string.
    others = _called(split, _DOCUMENT_OF_BYTES, F.when(usual.isNull(), text)).cast(_DOCUMENT)
    return F.coalesce(usual, others)


def _document(known: Column, schema: Column, payload: Column) -> Column:
    return F.struct(
        known.cast("int").alias("known"),
        schema.cast("string").alias("schema"),
        payload.alias("payload"),
    )


def _starts_of(examples: Sequence[bytes], places: Mapping[str, int]) -> Mapping[bytes, str]:
    """Return the known schemas by the bytes of the examples up to their payload."""
    splitter = _Splitter(places)
    for example in examples:
        splitter.split(example)
    return {start: schema for start, schema in splitter.starts.items() if schema in places}


def _ends_with_payload(text: Column) -> Column:
    """Return whether the document ends with its payload and a bracket, without white space."""
    end = text.cast("binary").substr(F.length(text) - 1, F.lit(2))
    return F.coalesce(end.cast("string").rlike(r"[^ \t\n\r]\}$"), F.lit(False))


def _after(start: bytes, text: Column) -> Column:
    """Return the payload of a document with this start; null if it is JSON's null."""
    payload = text.cast("binary").substr(F.lit(len(start) + 1), F.length(text) - len(start) - 1)
    return F.nullif(payload.cast("string"), F.lit("null"))


def canonical(schema: str) -> str:
    """Return the canonical form of a schema, which is the same for all of its texts."""
    try:
        parsed = json.loads(schema, parse_float=Decimal)
    except ValueError:
        return schema
    return _written(parsed)


_Document = tuple[int | None, str | None, bytes | None]
"""The place of the schema among the known ones, the schema, and the payload."""


class _Splitter:
    """Splits documents. Nine tenths of one are its schema, with the same bytes in every event."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self.starts: dict[bytes, str] = {}
        """By the bytes of documents up to their payload, the schema in them."""

    def split(self, value: bytes) -> _Document | None:
        for start, schema in self.starts.items():
            if value.startswith(start):
                return self._after(value, start, schema)
        if value.lstrip(_SPACE)[:1] != b"{":
            return None
        if _ANOTHER_NAME.match(value):
            return None, None, value
        try:
            return self._parsed(value)
        except (NotJson, UnicodeDecodeError):
            return None

    def _parsed(self, value: bytes) -> _Document | None:
        text = value.decode("utf-8", "surrogateescape")
        found: dict[str, str] = {}
        end = text.index("{") + 1
        for member in members(text):
            if member.name not in ("schema", "payload"):
                return None, None, value
            if member.name == "schema" and not found:
                payload = _PAYLOAD_NEXT.match(text, member.end)
                start = b"" if payload is None else text[: payload.end()].encode("utf-8", "surrogateescape")
                if _is_utf8(start) and self._remember(start, text, member):
                    return self._after(value, start, self.starts[start])
            found[member.name] = text[member.start : member.end]
            end = member.end
        value.decode("utf-8")
        if text[text.index("}", end) + 1 :].strip(" \t\n\r"):
            return None
        if "payload" not in found:
            return None, None, value
        schema = found.get("schema", "null")
        return self._document(None if schema == "null" else canonical(schema), found["payload"].encode())

    def _remember(self, start: bytes, text: str, schema: Member) -> bool:
        """Remember the start of a document if there is one, with the schema of a Connect struct."""
        is_struct = bool(start) and isinstance(schema.value, dict) and schema.value.get("type") == "struct"
        if not is_struct or not isinstance(schema.value.get("fields"), list):
            return False
        if len(self.starts) >= _MOST_STARTS:
            self.starts.clear()
        self.starts[start] = canonical(text[schema.start : schema.end])
        return True

    def _after(self, value: bytes, start: bytes, schema: str) -> _Document | None:
        """Split a document with a known start. What follows must be its payload, which its reader parses."""
        rest = value[len(start) :].rstrip(_SPACE)
        return self._document(schema, rest[:-1].rstrip(_SPACE)) if rest.endswith(b"}") else None

    def _document(self, schema: str | None, payload: bytes) -> _Document:
        known = None if schema is None else self._places.get(schema)
        return known, schema, None if payload == b"null" else payload


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shape_with(shapes: Sequence[ReadableShape], names: set[str]) -> int | None:
    for place, shape in enumerate(shapes):
        if len(names.intersection(shape.names)) >= shape.least:
            return place
    return None


def _written(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{_written(name)}:{_written(value[name])}" for name in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case Decimal():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def _result_type(wire: StructType) -> StructType:
    return StructType(
        [
            StructField("payload", wire),
            StructField("problem", StringType()),
            StructField("has_unnamed", BooleanType()),
        ]
    )


def _read_usually(
    usual: UsualPayload | None, read: Callable[[bytearray | None], Any], result: DataType, text: Column
) -> Column:
    """Return the usual reading, and for doubtful payloads the one by a Python function."""
    if usual is None:
        return _called(read, result, text)

    def read_doubtful(value: bytearray | None) -> tuple[Any] | None:
        return None if value is None else (read(value),)

    closer = StructType([StructField("found", result)])
    found = _called(read_doubtful, closer, F.when(usual.is_doubtful, text))
    return F.when(found.isNotNull(), found["found"]).otherwise(usual.value)


def _called(function: Callable[..., Any], result: DataType, text: Column) -> Column:
    return F.udf(function, result)(text.cast("binary"))
