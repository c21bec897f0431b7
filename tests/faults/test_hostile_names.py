"""Tables, columns and keys with any name work, and no name makes the app write to another place."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from psycopg import sql

from tests.faults.whole_pipeline import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

TABLES = (
    "select",
    "Select",
    "SELECT",
    "with space",
    " quote\"d and 'quoted' ",
    "naïve-名前-🦆",
    "/etc/passwd",
    "%2e%2e%2f",
    "x'); DROP TABLE marks; --",
    "_hoodie_commit_time",
    "e0",
)
COLUMNS = ("select", "_", "x" * 63, "value", "op", "before", "schema", "payload")
KEYS = (
    "",
    " ",
    "'; DROP TABLE marks; --",
    '"}],"schema":{"type":"string"},"payload":{"op":"d"}}',
    "../../../../escaped",
    "\\",
    "\n\r\t\x01",
    "null",
    "🦆" * 100,
    "__HIVE_DEFAULT_PARTITION__",
    "_key:1,_key:2",
    "x" * 3000,
)
WIDE = 1_000


def test_odd_names_and_keys_work_like_any_others(at_work: Pipeline) -> None:
    names = at_work.tributary.workspace.lake.names
    silver = names.silver_bucket
    before = at_work.objects(silver)
    with at_work.tributary.connect() as database:
        for table in TABLES:
            _make(database, table, COLUMNS)
        _make(database, "wide", [f"c{number}" for number in range(WIDE)])
    at_work.wait_for_mark()
    at_work.check()

    with at_work.tributary.connect() as database:
        for table in (*TABLES, "wide"):
            name, column = sql.Identifier(table), sql.Identifier("c0" if table == "wide" else COLUMNS[0])
            update = sql.SQL("UPDATE {} SET {} = 'changed' WHERE key = ANY({})")
            database.execute(update.format(name, column, _array(KEYS[::2])))
            database.execute(sql.SQL("DELETE FROM {} WHERE key = ANY({})").format(name, _array(KEYS[::3])))
    at_work.check()

    tables = {names.table_of_path("/".join(key.split("/")[:3])) for key in at_work.objects(silver) - before}
    assert None not in tables
    assert {table.table for table in tables if table is not None} >= {*TABLES, "wide"}


def _make(database: psycopg.Connection, table: str, columns: Sequence[str]) -> None:
    """Create a table with a row for each key and a value in each column."""
    name, comma = sql.Identifier(table), sql.SQL(", ")
    named = [sql.Identifier(column) for column in columns]
    texts = comma.join(column + sql.SQL(" text") for column in named)
    database.execute(sql.SQL("CREATE TABLE {} (key text PRIMARY KEY, {})").format(name, texts))
    values = [sql.SQL("left(k, 1)")] * len(named)
    # The keys are part of the statement, because psycopg would read a % in a name as a placeholder.
    statement = sql.SQL("INSERT INTO {} (key, {}) SELECT k, {} FROM unnest({}) k")
    database.execute(statement.format(name, comma.join(named), comma.join(values), _array(KEYS)))


def _array(keys: Sequence[str]) -> sql.Composed:
    return sql.SQL("ARRAY[{}]::text[]").format(sql.SQL(", ").join(map(sql.Literal, keys)))
