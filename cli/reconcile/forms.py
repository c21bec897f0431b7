"""How a value of PostgreSQL and the value that the lake made of it are brought into one comparable form.

Both sides are brought there by SQL: the database's by PostgreSQL, the lake's by DuckDB. Two values are the
same if and only if their forms are: decimals by value, moments in microseconds since 1970, text and bytes as
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, LiteralString

import pyarrow as pa
from psycopg import sql

_INFINITE = 2**63 - 1
"""Later than all moments; its negative is earlier than all."""


@dataclass(frozen=True)
class Form:
    """A comparable form.

    `arrow` is its type. `database` makes the PostgreSQL expression of it from that of the value, `lake` the
    DuckDB expression. `reads` tells whether it can be made from a lake column of an Arrow type. `show`
    writes a comparable value for a person.
    """

    name: str
    arrow: pa.DataType
    database: Callable[[sql.Composable], sql.Composable]
    lake: Callable[[str], str]
    reads: Callable[[pa.DataType], bool]
    show: Callable[[Any], str] = repr


@dataclass(frozen=True)
class DatabaseType:
    """A type of PostgreSQL: its name in pg_type, domains resolved. `element` is set for arrays."""

    name: str
    element: DatabaseType | None = None
    is_enum: bool = False

    def __str__(self) -> str:
        return f"{self.element}[]" if self.element else self.name


def form_of(database_type: DatabaseType) -> Form | None:
    """The form for the type's values, or None for a type whose values cannot be compared exactly."""
    if database_type.element is not None:
        element = form_of(database_type.element)
        return None if element is None else _list_of(element)
    if database_type.is_enum:
        return TEXT
    return _BY_TYPE.get(database_type.name)


def _template(text: LiteralString) -> Callable[[sql.Composable], sql.Composable]:
    return lambda value: sql.SQL(text).format(value=value)


def _itself(value: sql.Composable) -> sql.Composable:
    return value


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


BOOLEAN = Form("boolean", pa.bool_(), _itself, lambda value: value, pa.types.is_boolean)

INTEGER = Form(
    "integer",
    pa.int64(),
    _template("{value}::bigint"),
    lambda value: f"CAST({value} AS BIGINT)",
    pa.types.is_integer,
)

FLOAT = Form(
    "float",
    pa.float64(),
    # float4 to float8 is exact in both engines, and both hold a NaN equal to a NaN.
    _template("{value}::float8"),
    lambda value: f"CAST({value} AS DOUBLE)",
    pa.types.is_floating,
)

NUMBER = Form(
    "number",
    # The shortest decimal text: a numeric column without a precision fits no Arrow decimal.
    pa.string(),
    _template("trim_scale({value}::numeric)::text"),
    lambda value: (
        f"CASE WHEN contains(CAST({value} AS VARCHAR), '.')"
        f" THEN rtrim(rtrim(CAST({value} AS VARCHAR), '0'), '.') ELSE CAST({value} AS VARCHAR) END"
    ),
    lambda found: pa.types.is_decimal(found) or pa.types.is_integer(found) or _is_text(found),
)

TEXT = Form(
    "text",
    pa.string(),
    # As the output function of the type prints it: a cast to text adds to an inet and takes from a char(n).
    _template("CASE WHEN {value} IS NOT NULL THEN format('%s', {value}) END"),
    lambda value: value,
    _is_text,
)

BYTES = Form(
    "bytes",
    pa.binary(),
    _itself,
    lambda value: value,
    lambda found: bool(pa.types.is_binary(found) or pa.types.is_large_binary(found)),
)

DATE = Form(
    "date",
    pa.int64(),
    _template(
        "CASE WHEN isfinite({value}) THEN ({value} - DATE '1970-01-01')::bigint"
        " WHEN {value} > DATE '1970-01-01' THEN 9223372036854775807"
        " WHEN {value} < DATE '1970-01-01' THEN -9223372036854775807 END"
    ),
    lambda value: _finite_or_infinite(value, f"CAST({value} - DATE '1970-01-01' AS BIGINT)"),
    pa.types.is_date,
    show=lambda value: _shown(lambda: date(1970, 1, 1) + timedelta(days=value), value, "days since 1970"),
)

MOMENT = Form(
    "moment",
    pa.int64(),
    # In two halves, because extract(epoch …) is a float before PostgreSQL 14.
    _template(
        "CASE WHEN isfinite({value}) THEN extract(epoch FROM date_trunc('second', {value}))::bigint * 1000000"
        " + extract(microseconds FROM {value})::bigint % 1000000"
        " WHEN {value} > 'epoch' THEN 9223372036854775807"
        " WHEN {value} < 'epoch' THEN -9223372036854775807 END"
    ),
    lambda value: _finite_or_infinite(value, f"epoch_us({value})"),
    pa.types.is_timestamp,
    show=lambda value: _shown(
        lambda: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value),
        value,
        "microseconds since 1970",
    ),
)

TIME_OF_DAY = Form(
    "time of day",
    pa.string(),
    _template("to_char({value}, 'HH24:MI:SS.US')"),
    lambda value: value,
    _is_text,
)


def _shown(moment: Callable[[], date], value: int | None, unit: str) -> str:
    if value is None or abs(value) == _INFINITE:
        return {None: "None", _INFINITE: "infinity", -_INFINITE: "-infinity"}[value]
    try:
        return moment().isoformat()
    except OverflowError:  # Before the year 1 or after 9999.
        return f"{value} {unit}"


def _finite_or_infinite(value: str, finite: str) -> str:
    return (
        f"CASE WHEN isfinite({value}) THEN {finite} WHEN {value} > '1970-01-01' THEN {_INFINITE}"
        f" WHEN {value} < '1970-01-01' THEN -{_INFINITE} END"
    )


def _list_of(element: Form) -> Form:
    def from_database(value: sql.Composable) -> sql.Composable:
        return sql.SQL(
            "CASE WHEN {value} IS NOT NULL THEN ARRAY(SELECT {element}"
            " FROM unnest({value}) WITH ORDINALITY AS item(value, place) ORDER BY place) END"
        ).format(value=value, element=element.database(sql.SQL("item.value")))

    return Form(
        f"list of {element.name}",
        pa.list_(element.arrow),
        from_database,
        lambda value: f"list_transform({value}, lambda item: {element.lake('item')})",
        lambda found: bool(pa.types.is_list(found) and element.reads(found.value_type)),
        show=lambda value: "None" if value is None else f"[{', '.join(map(element.show, value))}]",
    )


_BY_TYPE: Mapping[str, Form] = {
    "bool": BOOLEAN,
    **dict.fromkeys(("int2", "int4", "int8", "oid"), INTEGER),
    **dict.fromkeys(("float4", "float8"), FLOAT),
    **dict.fromkeys(("numeric", "money"), NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), TEXT),
    **dict.fromkeys(("json", "jsonb", "uuid", "xml", "ltree", "inet", "cidr", "macaddr", "macaddr8"), TEXT),
    **dict.fromkeys(
        ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "tsvector"), TEXT
    ),
    "bytea": BYTES,
    "date": DATE,
    **dict.fromkeys(("timestamp", "timestamptz"), MOMENT),
    "time": TIME_OF_DAY,
}
