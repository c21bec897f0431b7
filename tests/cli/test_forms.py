"""A value in the lake has the same form as in a real PostgreSQL, for every type, and differs from others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from psycopg import sql

from connectors.engines.engine import DatabaseTable, RowsUnreadable
from connectors.engines.postgres.reading import one_snapshot, read_rows, read_tables
from tributary.operations.reconcile.comparison import Comparison, Kind, compare
from tributary.operations.reconcile.pairing import comparable_lake_rows, pair

pytestmark = pytest.mark.slow

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
BITS = st.text("01", max_size=10) | st.text("01", min_size=10, max_size=10)
ZONES = st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@dataclass(frozen=True)
class Case:
    """A PostgreSQL type, its type in the lake, values, and both sides' forms of a value."""

    ddl: LiteralString
    lake: pa.DataType
    values: st.SearchStrategy[Any]
    in_lake: Callable[[Any], Any] = lambda value: value
    in_database: Callable[[Any], Any] = lambda value: value
    is_same: Callable[[Any, Any], bool] = lambda one, other: one == other


def _decimals(places: int, digits: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    # From its digits, because arithmetic would round to the context's 28 digits.
    return st.integers(-most, most).map(
        lambda unscaled: Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -places))
    )


def _list_of(case: Case, ddl: LiteralString) -> Case:
    return Case(
        ddl,
        pa.list_(case.lake),
        st.lists(st.none() | case.values, max_size=3),
        in_lake=lambda values: [None if value is None else case.in_lake(value) for value in values],
        is_same=lambda one, other: (
            len(one) == len(other)
            and all(
                a is b or (a is not None and b is not None and case.is_same(a, b))
                for a, b in zip(one, other, strict=True)
            )
        ),
    )


def _is_same_float(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _without_zone(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


def _lowest_bits_first(bits: str) -> bytes:
    """Return the bytes that Debezium sends: as many as the number needs, lowest first."""
    number = int(f"0{bits}", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _in_utc(clock: time) -> time:
    return datetime.combine(date(2000, 1, 2), clock).astimezone(UTC).time()


def _iso_interval(parts: tuple[int, int, int]) -> str:
    months, days, micros = parts
    years, months = int(months / 12), int(math.fmod(months, 12))
    sign, (minutes, micros) = (-1 if micros < 0 else 1), divmod(abs(micros), 60_000_000)
    seconds = f"{'-' if sign < 0 and micros else ''}{micros // 1_000_000}.{micros % 1_000_000:06}"
    seconds = seconds.rstrip("0").rstrip(".")
    return f"P{years}Y{months}M{days}DT{sign * (minutes // 60)}H{sign * (minutes % 60)}M{seconds}S"


def _hstore(pairs: dict[str, str | None]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ", ".join(f"{quoted(k)}=>{'NULL' if v is None else quoted(v)}" for k, v in pairs.items())


def _is_same_point(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return all(map(_is_same_float, one, other))


INTEGER = Case("integer", pa.int32(), st.integers(-(2**31), 2**31 - 1))
NUMERIC = Case("numeric(12, 4)", pa.decimal128(12, 4), _decimals(4, 12))
TEXTS = Case("text", pa.string(), TEXT)
TIMESTAMP = Case("timestamp", pa.timestamp("us", "UTC"), MOMENTS, in_lake=_without_zone)
DOUBLE = Case("double precision", pa.float64(), st.floats(), is_same=_is_same_float)
CASES = {
    "flag": Case("boolean", pa.bool_(), st.booleans()),
    "small": Case("smallint", pa.int32(), st.integers(-(2**15), 2**15 - 1)),
    "whole": INTEGER,
    "widened": Case("bigint", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "single": Case("real", pa.float32(), st.floats(width=32), is_same=_is_same_float),
    "precise": DOUBLE,
    "amount": NUMERIC,
    "wide": Case("numeric(38, 10)", pa.decimal128(38, 10), _decimals(10, 38)),
    "tiny": Case("numeric(5, 5)", pa.decimal128(5, 5), _decimals(5, 5)),
    "rescaled": Case("numeric(8, 2)", pa.decimal128(12, 4), _decimals(2, 8)),
    "free": Case("numeric", pa.string(), _decimals(7, 50), in_lake=lambda value: format(value, "f")),
    "note": TEXTS,
    "padded": Case(
        "char(5)",
        pa.string(),
        TEXT,
        in_lake=lambda value: value.ljust(5),
        is_same=lambda one, other: one.ljust(5) == other.ljust(5),
    ),
    "blob": Case("bytea", pa.binary(), st.binary(max_size=5)),
    "day": Case("date", pa.date32(), DATES),
    "local_moment": TIMESTAMP,
    "moment": Case(
        "timestamptz",
        pa.timestamp("us", "UTC"),
        st.builds(lambda moment, zone: moment.replace(tzinfo=zone), MOMENTS, ZONES),
        in_lake=lambda moment: moment.astimezone(UTC),
    ),
    "clock": Case("time", pa.string(), st.times(), in_lake=lambda value: value.strftime("%H:%M:%S.%f")),
    "token": Case("uuid", pa.string(), st.uuids(), in_lake=str),
    "document": Case("json", pa.string(), st.builds(lambda text: json.dumps({"a": [text, None]}), TEXT)),
    "mood": Case("mood", pa.string(), st.sampled_from(["happy", "sad", "O'Brien"])),
    "short": Case("short_text", pa.string(), TEXT),
    "one_bit": Case("bit(1)", pa.bool_(), st.sampled_from("01"), in_lake=lambda value: value == "1"),
    "bits": Case("bit(10)", pa.binary(), BITS.filter(lambda v: len(v) == 10), in_lake=_lowest_bits_first),
    "more_bits": Case(
        "varbit",
        pa.binary(),
        BITS,
        in_lake=_lowest_bits_first,
        is_same=lambda one, other: one.lstrip("0") == other.lstrip("0"),
    ),
    "clock_in_zone": Case(
        "timetz",
        pa.string(),
        st.builds(lambda clock, zone: clock.replace(tzinfo=zone), st.times(), ZONES),
        in_lake=lambda value: f"{_in_utc(value).isoformat()}Z",
        is_same=lambda one, other: _in_utc(one) == _in_utc(other),
    ),
    "span": Case(
        "interval",
        pa.string(),
        st.tuples(st.integers(-30, 30), st.integers(-40, 40), st.integers(-(10**10), 10**10)),
        in_lake=_iso_interval,
        in_database=lambda value: "{} months {} days {} microseconds".format(*value),
    ),
    "pairs": Case(
        "hstore",
        pa.string(),
        st.dictionaries(TEXT, st.none() | TEXT, max_size=3),
        in_lake=lambda value: json.dumps(dict(reversed(value.items())), ensure_ascii=False),
        in_database=_hstore,
    ),
    "spot": Case(
        "point",
        pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int32())]),
        st.tuples(st.floats(), st.floats()),
        in_lake=lambda value: {"x": value[0], "y": value[1], "wkb": b"", "srid": None},
        in_database=lambda value: "({!r},{!r})".format(*value),
        is_same=_is_same_point,
    ),
    "log_place": Case(
        "pg_lsn",
        pa.binary(),
        st.integers(0, 2**64 - 1).map(lambda place: f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"),
        in_lake=str.encode,
    ),
    "flags": _list_of(Case("boolean", pa.bool_(), st.booleans()), "boolean[]"),
    "wholes": _list_of(INTEGER, "integer[]"),
    "amounts": _list_of(NUMERIC, "numeric(12, 4)[]"),
    "notes": _list_of(TEXTS, "text[]"),
    "local_moments": _list_of(TIMESTAMP, "timestamp[]"),
    "precises": _list_of(DOUBLE, "double precision[]"),
    "blobs": _list_of(Case("bytea", pa.binary(), st.binary(max_size=5)), "bytea[]"),
}
LAKE = pa.schema(
    [("id", pa.int32()), *[(name, case.lake) for name, case in CASES.items()], ("_op", pa.string())]
)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | case.values for name, case in CASES.items()}), max_size=3
).map(lambda rows: [{"id": number, **row} for number, row in enumerate(rows)])
Row = dict[str, Any]


@pytest.fixture
def table(database: psycopg.Connection) -> DatabaseTable:
    database.execute("CREATE SCHEMA extras; CREATE EXTENSION hstore SCHEMA extras")
    database.execute("SET search_path = public, extras")
    database.execute("CREATE TYPE mood AS ENUM ('happy', 'sad', 'O''Brien')")
    database.execute("CREATE DOMAIN short_text AS varchar(20)")
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(case.ddl)) for name, case in CASES.items()
    ]
    database.execute(
        sql.SQL(
            "CREATE TABLE forms (id integer PRIMARY KEY, {}, twice int GENERATED ALWAYS AS (id * 2) STORED)"
        ).format(sql.SQL(", ").join(columns))
    )
    return next(found for found in read_tables(database) if found.name == "forms")


def _compared(
    database: psycopg.Connection, table: DatabaseTable, rows: list[Row], lake: list[Row]
) -> Comparison:
    names = ["id", *CASES]
    insert = sql.SQL("INSERT INTO forms ({}) VALUES ({})").format(
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join(
            sql.SQL("%s::{}").format(sql.SQL(CASES[name].ddl if name in CASES else "integer"))
            for name in names
        ),
    )
    with database.cursor() as cursor:
        cursor.execute("TRUNCATE forms")
        cursor.executemany(insert, [[_in_database(name, row[name]) for name in names] for row in rows])
    found = pa.Table.from_pylist([_in_lake(row) for row in lake], LAKE)
    pairing = pair(table, found.schema, table.primary_key)
    assert (pairing.unheard, pairing.dropped, pairing.mismatched, pairing.uncompared) == ((), (), {}, ())
    with one_snapshot(database):
        batches = read_rows(database, table, pairing.forms)
        return compare(batches, comparable_lake_rows(found, pairing), pairing.schema, pairing.key)


def _in_database(name: str, value: Any) -> Any:
    return value if value is None or name not in CASES else CASES[name].in_database(value)


def _in_lake(row: Row) -> Row:
    values = {name: None if row[name] is None else case.in_lake(row[name]) for name, case in CASES.items()}
    return {"id": row["id"], **values, "_op": "r"}


@given(rows=ROWS)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_lake_s_form_of_a_row_equals_the_row(
    database: psycopg.Connection, table: DatabaseTable, rows: list[Row]
) -> None:
    assert _compared(database, table, rows, rows) == Comparison(len(rows), ())


@given(rows=ROWS, data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_different_value_is_found_in_its_column(
    database: psycopg.Connection, table: DatabaseTable, rows: list[Row], data: st.DataObject
) -> None:
    assume(rows)
    row = data.draw(st.sampled_from(rows))
    column = data.draw(st.sampled_from(sorted(CASES)))
    value = data.draw(st.none() | CASES[column].values)
    if row[column] is None or value is None:
        assume(row[column] is not value)
    else:
        assume(not CASES[column].is_same(row[column], value))
    lake = [row | {column: value} if other is row else other for other in rows]

    differences = _compared(database, table, rows, lake).differences

    assert [(one.key, one.kind, [cell.column for cell in one.cells]) for one in differences] == [
        ((row["id"],), Kind.CHANGED, [column])
    ]


def test_infinite_dates_and_moments_differ_from_null_and_from_each_other(
    database: psycopg.Connection, table: DatabaseTable
) -> None:
    database.execute(
        "INSERT INTO forms (id, day, moment) VALUES (1, 'infinity', '-infinity'), (2, NULL, NULL)"
    )
    forms = pair(table, LAKE, ("id",)).forms
    wanted = {name: forms[name] for name in ("id", "day", "moment")}
    with one_snapshot(database):
        rows = [row for batch in read_rows(database, table, wanted) for row in batch.to_pylist()]
    assert rows == [
        {"id": 1, "day": 2**63 - 1, "moment": -(2**63 - 1)},
        {"id": 2, "day": None, "moment": None},
    ]
    assert [forms["day"].show(row["day"]) for row in rows] == ["infinity", "None"]


@pytest.mark.parametrize("name", ["e", "item", "x", "column 0", "lake"])
def test_a_column_may_have_the_name_of_anything_in_a_form_s_expression(
    database: psycopg.Connection, name: str
) -> None:
    database.execute("CREATE SCHEMA extras; CREATE EXTENSION hstore SCHEMA extras")
    database.execute("SET search_path = public, extras")
    ddl = "CREATE TABLE odd (id int PRIMARY KEY, {} text, h hstore, a int[])"
    database.execute(sql.SQL(ddl).format(sql.Identifier(name)))
    database.execute("INSERT INTO odd VALUES (1, 'x', 'k=>v', '{1,2}')")
    odd = next(found for found in read_tables(database) if found.name == "odd")
    lake = pa.table({"id": [1], name: ["x"], "h": ['{"k":"v"}'], "a": [[1, 2]], "_op": ["c"]})
    pairing = pair(odd, lake.schema, ("id",))
    with one_snapshot(database):
        rows = list(read_rows(database, odd, pairing.forms))
    assert compare(rows, comparable_lake_rows(lake, pairing), pairing.schema, pairing.key).identical


def test_a_table_that_may_not_be_read_does_not_end_the_snapshot(database: psycopg.Connection) -> None:
    database.execute("CREATE TABLE closed (id int PRIMARY KEY); CREATE TABLE open (id int PRIMARY KEY)")
    closed, opened = read_tables(database)
    with one_snapshot(database):
        broken = replace(closed, relation="public.gone AS t")
        with pytest.raises(RowsUnreadable, match="gone"):
            list(read_rows(database, broken, ["id"]))
        assert list(read_rows(database, opened, ["id"])) == []
