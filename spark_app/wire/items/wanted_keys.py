"""Keys of items as a person writes them, and where they are: in records, and in the record keys of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any, Literal

from spark_app.wire.items.attributes import Attribute, Item, NotAnAttribute, text_of
from spark_app.wire.items.item_columns import column_of
from spark_app.wire.items.numbers import NotANumber, number, number_text
from spark_app.wire.items.record import UnreadableRecord, content_of, table_of_record

Value = tuple[Literal["number", "text"], str]
"""A key attribute's value. Equal numbers have one text. The text of a binary value is its base64."""

_NUMBER = "N"


@dataclass(frozen=True)
class WantedKeys:
    """Keys to look for, each with a text for each column of the table's key.

    A text stands for a number of the same value, for itself, and for the bytes of which it is the base64.
    Workers get a copy, so it holds no session.

    table  the name of the items' table, without source and schema
    """

    keys: tuple[Mapping[str, str], ...]
    table: str

    def in_record(self, value: bytes | None) -> int | None:
        """Return the number of the key whose item a record is about; None if it is about none of them.

        The record can be damaged. Then its attributes are looked for in its text. Without the name of a
        table, it counts as one of this table."""
        if value is None:
            return None
        found = _Record.of(bytes(value))
        if found.table not in (None, self.table):
            return None
        for item in found.items:
            values = {column_of(name): _value(attribute) for name, attribute in item.items()}
            if all(values.get(name) is not None for name in self._columns):
                return self._numbers.get(tuple(values[name] for name in self._columns))
        return self._in_attributes(found.attributes)

    def in_record_key(self, text: str | None) -> int | None:
        """Return the number of the key that a row's record key (`decoder.record_key`) says; None if none."""
        if text is None:
            return None
        try:
            values = {column_of(name): _value_of_json(value) for name, value in _members(text)}
        except ValueError:
            return None
        return self._numbers.get(tuple(values.get(name) for name in self._columns))

    def numbers_of(self, key: Mapping[str, str]) -> frozenset[int]:
        """Return the numbers under which a key is found: two texts can stand for one key."""
        meanings = product(*(_meanings(key[name]) for name in self._columns))
        return frozenset(self._numbers[values] for values in meanings)

    def _in_attributes(self, attributes: Sequence[tuple[str, Attribute]]) -> int | None:
        found: dict[str, set[Value | None]] = {}
        for name, attribute in attributes:
            found.setdefault(column_of(name), set()).add(_value(attribute))
        for values, key in self._numbers.items():
            if all(value in found.get(name, ()) for name, value in zip(self._columns, values, strict=True)):
                return key
        return None

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        return tuple(sorted(self.keys[0])) if self.keys else ()

    @cached_property
    def _numbers(self) -> Mapping[tuple[Value | None, ...], int]:
        """The number of each key, by all values that its texts can stand for."""
        return {
            values: place
            for place, key in enumerate(self.keys)
            for values in product(*(_meanings(key[name]) for name in self._columns))
        }


@dataclass(frozen=True)
class _Record:
    """The content of a record, as far as it can be read.

    items       the objects that hold the attributes of its key, the best one first
    attributes  what looks like an attribute in the text of a record without such objects
    """

    table: str | None
    items: tuple[Item, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()

    @classmethod
    def of(cls, data: bytes) -> _Record:
        try:
            change = content_of(data).get("dynamodb")
        except UnreadableRecord:
            change = None
        if not isinstance(change, dict):
            return cls._damaged(data.decode(errors="replace"))
        found = [change.get(name) for name in ("Keys", "NewImage", "OldImage")]
        return cls(table_of_record(data), tuple(each for each in found if isinstance(each, dict)))

    @classmethod
    def _damaged(cls, text: str) -> _Record:
        named = _TABLE.search(text)
        attributes = (
            (_unescaped(match[1]), {match[2]: _unescaped(match[3])}) for match in _ATTRIBUTE.finditer(text)
        )
        return cls(None if named is None else named[1], (), tuple(attributes))


_TEXT = r'"((?:[^"\\]|\\.)*)"'
_TABLE = re.compile(r'"tableName"\s*:\s*"([\w.-]+)"', re.ASCII)
_ATTRIBUTE = re.compile(rf'{_TEXT}\s*:\s*\{{\s*"([SNB])"\s*:\s*{_TEXT}', re.DOTALL)


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _value(attribute: Any) -> Value | None:
    """Return the value of a key attribute; None if it is none."""
    try:
        text = text_of(attribute)
    except (NotAnAttribute, RecursionError):
        return None
    if text is None:
        return None
    return ("number" if _NUMBER in attribute else "text"), text


def _value_of_json(value: object) -> Value | None:
    match value:
        case str():
            return "text", value
        case Decimal():
            return "number", number_text(number(str(value)))
        case _:
            return None


def _meanings(text: str) -> Iterator[Value]:
    yield "text", text
    try:
        yield "number", number_text(number(text))
    except NotANumber:
        return


_JSON = json.JSONDecoder(parse_int=Decimal, parse_float=Decimal)


def _members(record_key: str) -> Iterator[tuple[str, object]]:
    """Yield the attributes in a record key: JSON objects, with a blank between two. Raises ValueError."""
    at = 0
    while at < len(record_key):
        found, end = _JSON.raw_decode(record_key, at)
        if not isinstance(found, dict):
            raise ValueError(record_key)
        yield from found.items()
        at = end + 1
