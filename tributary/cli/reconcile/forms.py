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
    """A type of PostgreSQL: its name in pg_type, domains resolved. `element` is set for arrays.

    modifier  what it was declared with, as pg_attribute.atttypmod encodes it: the length of a bit(n)
    """

    name: str
    element: DatabaseType | None = None
    is_enum: bool = False
    modifier: int | None = None

    def __str__(self) -> str:
        return f"{self.element}[]" if self.element else self.name


def form_of(database_type: DatabaseType) -> Form | None:
    """The form for the type's values, or None for a type whose values cannot be compared exactly."""
    if database_type.element is not None and database_type.element.name in _NOT_SENT_IN_ARRAYS:
        return None
    if database_type.element is not None:
        element = form_of(database_type.element)
        return None if element is None else _list_of(element)
    if database_type.is_enum:
        return TEXT
    if database_type.name in ("bit", "varbit") and database_type.modifier == 1:
        return ONE_BIT
    return _BY_TYPE.get(database_type.name)


def _template(text: LiteralString) -> Callable[[sql.Composable], sql.Composable]:
    return lambda value: sql.SQL(text).format(value=value)


def _itself(value: sql.Composable) -> sql.Composable:
    return value


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def _is_binary(found: pa.DataType) -> bool:
    return bool(pa.types.is_binary(found) or pa.types.is_large_binary(found))


def _in_quotes(text: str) -> str:
    """DuckDB's expression of the text as hstore prints it."""
    return f"""'"' || replace(replace({text}, '\\', '\\\\'), '"', '\\"') || '"'"""


def _with_leading_zero(number: str) -> str:
    """DuckDB prints a decimal without places before the point as .5"""
    return rf"regexp_replace(CAST({number} AS VARCHAR), '^(-?)[.]', '\10.')"


def _without_needless_zeros(number: str) -> str:
    return f"CASE WHEN contains({number}, '.') THEN rtrim(rtrim({number}, '0'), '.') ELSE {number} END"


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
    lambda value: _without_needless_zeros(_with_leading_zero(value)),
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

BYTES = Form("bytes", pa.binary(), _itself, lambda value: value, _is_binary)

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
        # PostgreSQL's last years are beyond 64 bits of microseconds, and so beyond what the lake holds.
        "CASE WHEN isfinite({value}) AND {value} >= '294247-01-10 04:00:54+00' THEN 9223372036854775806"
        " WHEN isfinite({value}) THEN extract(epoch FROM date_trunc('second', {value}))::bigint * 1000000"
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

TIME_IN_UTC = Form(
    "time of day in UTC",
    pa.string(),
    _template("to_char(({value} AT TIME ZONE 'UTC')::time, 'HH24:MI:SS.US')"),
    lambda value: f"left({value}, 8) || '.' || rpad(regexp_extract({value}, '[.](\\d+)', 1), 6, '0')",
    _is_text,
)

INTERVAL = Form(
    "interval",
    pa.string(),
    # By its parts, which are not converted into each other: a month is no number of days.
    _template(
        "'P' || extract(year FROM {value}) || 'Y' || extract(month FROM {value}) || 'M'"
        " || extract(day FROM {value}) || 'DT' || extract(hour FROM {value}) || 'H'"
        " || extract(minute FROM {value}) || 'M'"
        " || trim_scale(extract(microseconds FROM {value})::numeric / 1000000) || 'S'"
    ),
    lambda value: value,
    _is_text,
)

ONE_BIT = Form("bit", pa.bool_(), _template("{value}::text = '1'"), lambda value: value, pa.types.is_boolean)

BITS = Form(
    "bits",
    pa.string(),
    # Debezium sends no leading zeros. A bit(n) always has as many as make n.
    _template("ltrim({value}::text, '0')"),
    lambda value: (
        f"CASE WHEN octet_length({value}) = 0 THEN '' ELSE ltrim(CAST(unhex(array_to_string(list_reverse("
        f"regexp_extract_all(hex({value}), '..')), '')) AS BIT)::VARCHAR, '0') END"
    ),
    _is_binary,
)

HSTORE = Form(
    "hstore",
    pa.string(),
    # Its own text, by which it is read without a function of the extension, in whatever schema that is.
    _template("{value}::text"),
    lambda value: (
        f"CASE WHEN {value} IS NOT NULL THEN array_to_string(list_transform(list_sort(list_transform("
        f"map_entries(CAST(CAST({value} AS JSON) AS MAP(VARCHAR, VARCHAR))),"
        " lambda e: {'length': octet_length(encode(e.key)), 'name': e.key, 'text': e.value})),"
        f" lambda e: {_in_quotes('e.name')} || '=>' || coalesce({_in_quotes('e.text')}, 'NULL')), ', ') END"
    ),
    _is_text,
)

POINT = Form(
    "point",
    pa.list_(pa.float64()),
    _template("CASE WHEN {value} IS NOT NULL THEN ARRAY[({value})[0], ({value})[1]] END"),
    lambda value: f"CASE WHEN {value} IS NOT NULL THEN [{value}.x, {value}.y] END",
    pa.types.is_struct,
)

TEXT_IN_BYTES = Form(
    "text in bytes",
    pa.binary(),
    # What a type that Debezium does not know is printed as.
    _template("convert_to({value}::text, 'UTF8')"),
    lambda value: value,
    _is_binary,
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


_NOT_SENT_IN_ARRAYS = {"money", "name", "interval", "bit", "varbit", "xml", "point"}
"""Arrays of these are not in Debezium's events (PostgresValueConverter)."""

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
    "timetz": TIME_IN_UTC,
    "interval": INTERVAL,
    **dict.fromkeys(("bit", "varbit"), BITS),
    "hstore": HSTORE,
    "point": POINT,
    **dict.fromkeys(("int4multirange", "int8multirange", "nummultirange"), TEXT_IN_BYTES),
    **dict.fromkeys(("tsmultirange", "tstzmultirange", "datemultirange"), TEXT_IN_BYTES),
    **dict.fromkeys(("pg_lsn", "tsquery", "jsonpath", "xid8", "txid_snapshot", "pg_snapshot"), TEXT_IN_BYTES),
}
