"""The SQL that computes each PostgreSQL type's comparable form, and the forms that only PostgreSQL has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import LiteralString

import pyarrow as pa
from psycopg import sql

from connectors.engines.forms import (
    BITS,
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT,
    INTEGER,
    MOMENT,
    NUMBER,
    TEXT,
    TIME_IN_UTC,
    TIME_OF_DAY,
    Form,
    as_it_is,
    is_binary,
    is_text,
    list_of,
)

Expression = Callable[[sql.Composable], sql.Composable]


@dataclass(frozen=True)
class Readable:
    """A form, and the PostgreSQL expression that computes it from a value's expression."""

    form: Form
    expression: Expression


@dataclass(frozen=True)
class DatabaseType:
    """A PostgreSQL type: its name in pg_type, with domains resolved. `element` is set for arrays.

    modifier  the type's declared modifier, as pg_attribute.atttypmod encodes it: the length of a bit(n)
    """

    name: str
    element: DatabaseType | None = None
    is_enum: bool = False
    modifier: int | None = None

    def __str__(self) -> str:
        return f"{self.element}[]" if self.element else self.name


def readable(database_type: DatabaseType) -> Readable | None:
    """Return how the type's values are compared, or None if they cannot be compared exactly."""
    if database_type.element is not None and database_type.element.name in _NOT_SENT_IN_ARRAYS:
        return None
    if database_type.element is not None:
        element = readable(database_type.element)
        return None if element is None else _array_of(element)
    if database_type.is_enum:
        return _TEXT
    if database_type.name in ("bit", "varbit") and database_type.modifier == 1:
        return _ONE_BIT
    return _BY_TYPE.get(database_type.name)


def _template(text: LiteralString) -> Expression:
    return lambda value: sql.SQL(text).format(value=value)


def _itself(value: sql.Composable) -> sql.Composable:
    return value


def _in_quotes(text: str) -> str:
    """Return DuckDB's expression for the text as hstore prints it."""
    return f"""'"' || replace(replace({text}, '\\', '\\\\'), '"', '\\"') || '"'"""


def _array_of(element: Readable) -> Readable:
    def expression(value: sql.Composable) -> sql.Composable:
        return sql.SQL(
            "CASE WHEN {value} IS NOT NULL THEN ARRAY(SELECT {element}"
            " FROM unnest({value}) WITH ORDINALITY AS item(value, place) ORDER BY place) END"
        ).format(value=value, element=element.expression(sql.SQL("item.value")))

    return Readable(list_of(element.form), expression)


_INTEGER = Readable(INTEGER, _template("{value}::bigint"))

_FLOAT = Readable(FLOAT, _template("{value}::float8"))

_NUMBER = Readable(NUMBER, _template("trim_scale({value}::numeric)::text"))

# As the type's output function prints it. A cast to text would add to an inet and trim a char(n).
_TEXT = Readable(TEXT, _template("CASE WHEN {value} IS NOT NULL THEN format('%s', {value}) END"))

_DATE = Readable(
    DATE,
    _template(
        "CASE WHEN isfinite({value}) THEN ({value} - DATE '1970-01-01')::bigint"
        " WHEN {value} > DATE '1970-01-01' THEN 9223372036854775807"
        " WHEN {value} < DATE '1970-01-01' THEN -9223372036854775807 END"
    ),
)

_MOMENT = Readable(
    MOMENT,
    # In two halves, because extract(epoch …) returns a float before PostgreSQL 14.
    _template(
        # PostgreSQL's last years exceed 64 bits of microseconds, and so the lake's range too.
        "CASE WHEN isfinite({value}) AND {value} >= '294247-01-10 04:00:54+00' THEN 9223372036854775806"
        " WHEN isfinite({value}) THEN extract(epoch FROM date_trunc('second', {value}))::bigint * 1000000"
        " + extract(microseconds FROM {value})::bigint % 1000000"
        " WHEN {value} > 'epoch' THEN 9223372036854775807"
        " WHEN {value} < 'epoch' THEN -9223372036854775807 END"
    ),
)

_TIME_OF_DAY = Readable(TIME_OF_DAY, _template("to_char({value}, 'HH24:MI:SS.US')"))

_TIME_IN_UTC = Readable(
    TIME_IN_UTC, _template("to_char(({value} AT TIME ZONE 'UTC')::time, 'HH24:MI:SS.US')")
)

_INTERVAL = Readable(
    Form("interval", pa.string(), as_it_is, is_text),
    # By its parts, because a month has no fixed number of days.
    _template(
        "'P' || extract(year FROM {value}) || 'Y' || extract(month FROM {value}) || 'M'"
        " || extract(day FROM {value}) || 'DT' || extract(hour FROM {value}) || 'H'"
        " || extract(minute FROM {value}) || 'M'"
        " || trim_scale(extract(microseconds FROM {value})::numeric / 1000000) || 'S'"
    ),
)

_ONE_BIT = Readable(BOOLEAN, _template("{value}::text = '1'"))

# A bit(n) always has its leading zeros, n digits in all.
_BITS = Readable(BITS, _template("ltrim({value}::text, '0')"))

_HSTORE = Readable(
    Form(
        "hstore",
        pa.string(),
        lambda value: (
            f"CASE WHEN {value} IS NOT NULL THEN array_to_string(list_transform(list_sort(list_transform("
            f"map_entries(CAST(CAST({value} AS JSON) AS MAP(VARCHAR, VARCHAR))),"
            " lambda e: {'length': octet_length(encode(e.key)), 'name': e.key, 'text': e.value})),"
            f" lambda e: {_in_quotes('e.name')} || '=>' || coalesce({_in_quotes('e.text')}, 'NULL')),"
            " ', ') END"
        ),
        is_text,
    ),
    # Its own text, which needs no function of the extension, whatever schema the extension is in.
    _template("{value}::text"),
)

_POINT = Readable(
    Form(
        "point",
        pa.list_(pa.float64()),
        lambda value: f"CASE WHEN {value} IS NOT NULL THEN [{value}.x, {value}.y] END",
        pa.types.is_struct,
    ),
    _template("CASE WHEN {value} IS NOT NULL THEN ARRAY[({value})[0], ({value})[1]] END"),
)

# As PostgreSQL prints a type that Debezium does not know.
_TEXT_IN_BYTES = Readable(
    Form("text in bytes", pa.binary(), as_it_is, is_binary), _template("convert_to({value}::text, 'UTF8')")
)

_NOT_SENT_IN_ARRAYS = {"money", "name", "interval", "bit", "varbit", "xml", "point"}
"""Element types whose arrays Debezium leaves out of its events (PostgresValueConverter)."""

_BY_TYPE: Mapping[str, Readable] = {
    "bool": Readable(BOOLEAN, _itself),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _INTEGER),
    **dict.fromkeys(("float4", "float8"), _FLOAT),
    **dict.fromkeys(("numeric", "money"), _NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), _TEXT),
    **dict.fromkeys(("json", "jsonb", "uuid", "xml", "ltree", "inet", "cidr", "macaddr", "macaddr8"), _TEXT),
    **dict.fromkeys(
        ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "tsvector"), _TEXT
    ),
    "bytea": Readable(BYTES, _itself),
    "date": _DATE,
    **dict.fromkeys(("timestamp", "timestamptz"), _MOMENT),
    "time": _TIME_OF_DAY,
    "timetz": _TIME_IN_UTC,
    "interval": _INTERVAL,
    **dict.fromkeys(("bit", "varbit"), _BITS),
    "hstore": _HSTORE,
    "point": _POINT,
    **dict.fromkeys(("int4multirange", "int8multirange", "nummultirange"), _TEXT_IN_BYTES),
    **dict.fromkeys(("tsmultirange", "tstzmultirange", "datemultirange"), _TEXT_IN_BYTES),
    **dict.fromkeys(
        ("pg_lsn", "tsquery", "jsonpath", "xid8", "txid_snapshot", "pg_snapshot"), _TEXT_IN_BYTES
    ),
}
