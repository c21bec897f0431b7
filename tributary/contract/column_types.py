"""The column types that a lake file can name: PostgreSQL's types, as its documentation spells them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainValidator

from tributary.contract.entries import expecting
from tributary.contract.errors import TributaryError

ALIASES = {
    "bool": "boolean",
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "decimal": "numeric",
    "character varying": "varchar",
    "character": "char",
    "bpchar": "char",
    "time without time zone": "time",
    "timetz": "time with time zone",
    "timestamp without time zone": "timestamp",
    "timestamptz": "timestamp with time zone",
}

_MOST_ARGUMENTS = {
    **dict.fromkeys(("boolean", "smallint", "integer", "bigint", "real", "double precision", "money"), 0),
    **dict.fromkeys(("text", "citext", "uuid", "json", "jsonb", "xml", "bytea", "date"), 0),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), 0),
    **dict.fromkeys(("varchar", "char", "time", "timestamp"), 1),
    **dict.fromkeys(("time with time zone", "timestamp with time zone"), 1),
    "numeric": 2,
}
TYPE_NAMES = tuple(_MOST_ARGUMENTS)

_TYPE = re.compile(
    r"([a-z][a-z0-9 ]*?)\s*(?:\(\s*(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?\)\s*([a-z ]*?))?\s*(\[\])?"
)


class NotAColumnType(TributaryError):
    """A text that does not name a column type."""


@dataclass(frozen=True)
class ColumnType:
    """A column type. `name` is one of `TYPE_NAMES`; `arguments` follow it in parentheses, as in (10, 2)."""

    name: str
    arguments: tuple[int, ...] = ()
    is_array: bool = False

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """Parse `numeric(10,2)`, `timestamp(3) without time zone`, `text[]`… Raises NotAColumnType."""
        match = _TYPE.fullmatch(" ".join(text.lower().split()))
        if match is not None:
            before, first, second, after, brackets = match.groups()
            spelled = " ".join(filter(None, (before, after)))
            name = ALIASES.get(spelled, spelled)
            arguments = tuple(int(argument) for argument in (first, second) if argument is not None)
            if len(arguments) <= _MOST_ARGUMENTS.get(name, -1):
                return cls(name, arguments, brackets is not None)
        raise NotAColumnType(
            "not a column type",
            found=repr(text),
            expected=f"one of {', '.join(TYPE_NAMES)}; append [] for an array, and use text for an enum",
        )


def _column_types(value: object) -> tuple[tuple[str, ColumnType], ...]:
    if not isinstance(value, dict) or not value or not all(isinstance(text, str) for text in value.values()):
        raise expecting('columns and their types, such as { id = "bigint", price = "numeric(10,2)" }')
    return tuple((name, _column_type(name, text)) for name, text in value.items())


def _column_type(name: str, text: str) -> ColumnType:
    try:
        return ColumnType.parse(text)
    except NotAColumnType as error:
        raise expecting(f"for the column {name}, instead of {error.found}, {error.expected}") from None


ColumnTypes = Annotated[tuple[tuple[str, ColumnType], ...], PlainValidator(_column_types)]
"""Columns and their types, as a lake file has them."""
