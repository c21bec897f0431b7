"""Random transactions on tables with every replica identity and with all large types."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

import psycopg
from psycopg import sql

_KEYS = range(1, 13)
TABLES = {
    "hard": "REPLICA IDENTITY DEFAULT",
    "soft": "REPLICA IDENTITY FULL",
    "copied": "REPLICA IDENTITY USING INDEX copied_index",
}
"""Each table's replica identity, in SQL."""

MORE_OF_THE_LAKE_FILE = """
[table."shop.public.soft"]
deletes = "soft"

[table."shop.public.copied"]
storage = "copy_on_write"
"""

_COLUMNS = """
    id bigint, name text NOT NULL, count int, ratio real, body text, raw bytea, details jsonb,
    tags text[], numbers int[], totals bigint[], codes uuid[]
"""
_LARGE = ("body", "raw", "details", "tags", "numbers", "totals", "codes")


def create_tables(connection: psycopg.Connection) -> None:
    for table, identity in TABLES.items():
        large = ", ".join(f"ALTER {name} SET STORAGE EXTERNAL" for name in _LARGE)
        connection.execute(
            f"CREATE TABLE {table} ({_COLUMNS}, PRIMARY KEY (id));"
            f"CREATE UNIQUE INDEX {table}_index ON {table} (id, name);"
            f"ALTER TABLE {table} {large};"
            f"ALTER TABLE {table} {identity}".encode()
        )


def transact(connection: psycopg.Connection, chance: random.Random, *, evolves: bool = False) -> None:
    """Commit one transaction of some changes. With `evolves`, one of them may change a table's columns."""
    table = chance.choice(list(TABLES))
    with connection.transaction():
        if evolves:
            chance.choice(_EVOLUTIONS)(connection, table, chance)
        for _ in range(chance.randint(1, 4)):
            chance.choice(_CHANGES)(connection, table, chance)


_Change = Callable[[psycopg.Connection, str, random.Random], None]


def _insert(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    values = {
        "id": chance.choice(_KEYS),
        "name": f"name {chance.random()}",
        "count": chance.randint(-(2**31), 2**31 - 1),
        "ratio": chance.choice([0.5, float("nan"), float("inf")]),
        **{name: _large(name, chance) for name in _LARGE if chance.random() < 0.8},
    }
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(sql.SQL("%s") + _cast(name) for name in values),
    )
    connection.execute(statement, list(values.values()))


def _update(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    """Update a small column, which leaves the large ones unchanged, or a large column."""
    name = chance.choice(["count", "ratio", *_LARGE])
    value: object = chance.randint(0, 99) if name in ("count", "ratio") else _large(name, chance)
    statement = sql.SQL("UPDATE {} SET {} = %s").format(sql.Identifier(table), sql.Identifier(name))
    connection.execute(
        statement + _cast(name) + sql.SQL(" WHERE id %% 3 = %s"), [value, chance.randint(0, 2)]
    )


def _delete(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    connection.execute(_of("DELETE FROM {} WHERE id = %s", table), [chance.choice(_KEYS)])


def _delete_and_insert(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    key = chance.choice(_KEYS)
    connection.execute(_of("DELETE FROM {} WHERE id = %s", table), [key])
    connection.execute(_of("INSERT INTO {} (id, name) VALUES (%s, 'again')", table), [key])


def _shift(connection: psycopg.Connection, table: str, _: random.Random) -> None:
    """Increase all keys by one, the highest first, and then delete those outside the range."""
    keys = connection.execute(_of("SELECT id FROM {} ORDER BY id DESC", table)).fetchall()
    for (key,) in keys:
        connection.execute(_of("UPDATE {} SET id = id + 1 WHERE id = %s", table), [key])
    connection.execute(_of("DELETE FROM {} WHERE id > %s", table), [max(_KEYS)])


def _swap(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    one, other = chance.sample(_KEYS, 2)
    for old, new in ((one, 100), (other, one), (100, other)):
        connection.execute(_of("UPDATE {} SET id = %s WHERE id = %s", table), [new, old])


def _truncate(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    if chance.random() < 0.3:
        connection.execute(_of("TRUNCATE {}", table))


def _add_column(connection: psycopg.Connection, table: str, chance: random.Random) -> None:
    connection.execute(_of("ALTER TABLE {} ADD COLUMN IF NOT EXISTS extra text", table))
    connection.execute(_of("UPDATE {} SET extra = 'x' WHERE id < %s", table), [chance.choice(_KEYS)])


def _widen(connection: psycopg.Connection, table: str, _: random.Random) -> None:
    connection.execute(
        _of("ALTER TABLE {} ALTER count TYPE bigint, ALTER ratio TYPE double precision", table)
    )


_CHANGES: tuple[_Change, ...] = (
    *(_insert,) * 5,
    *(_update,) * 3,
    _delete,
    _delete_and_insert,
    _shift,
    _swap,
    _truncate,
)
_EVOLUTIONS: tuple[_Change, ...] = (_add_column, _widen)


def _of(statement: str, table: str) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(table))


def _cast(name: str) -> sql.SQL:
    casts = {"details": "::jsonb", "codes": "::uuid[]", "numbers": "::int[]", "totals": "::bigint[]"}
    return sql.SQL(casts.get(name, ""))


def _large(name: str, chance: random.Random) -> object:
    """Return a value that is too large for the row itself, so PostgreSQL stores it separately."""
    match name:
        case "body":
            return chance.randbytes(1500).hex()
        case "raw":
            return chance.randbytes(3000)
        case "details":
            return f'{{"text": "{chance.randbytes(1500).hex()}"}}'
        case "tags":
            return [None, *(chance.randbytes(40).hex() for _ in range(40))]
        case "codes":
            return [str(uuid.UUID(bytes=chance.randbytes(16))) for _ in range(200)]
        case _:
            return [chance.randint(0, 2**31 - 1) for _ in range(800)]
