"""What tables a PostgreSQL database has and which rows they hold, as one snapshot sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from tributary.cli.reconcile.forms import DatabaseType, Form

ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class DatabaseColumn:
    """A column whose values are stored: generated columns are not replicated and so are none."""

    name: str
    type: DatabaseType


@dataclass(frozen=True)
class DatabaseTable:
    """A table, or a partitioned table as a whole. `primary_key` is empty where there is none."""

    schema: str
    name: str
    columns: tuple[DatabaseColumn, ...]
    primary_key: tuple[str, ...]
    is_partitioned: bool = False


@contextmanager
def one_snapshot(connection: psycopg.Connection) -> Iterator[None]:
    """All that is read within sees the database as it is now. The connection has to be in autocommit."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # As Debezium's session prints what it sends as text, such as the bounds of a range.
        connection.execute("SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'")
        connection.execute("SELECT 1")  # The snapshot is taken by the first query, not by BEGIN.
        yield


def read_tables(connection: psycopg.Connection) -> tuple[DatabaseTable, ...]:
    """All tables of the database that can be replicated, ordered by schema and name."""
    columns: dict[tuple[str, str, bool], list[DatabaseColumn]] = {}
    for (
        schema,
        table,
        is_partitioned,
        column,
        type_name,
        is_enum,
        modifier,
        element,
        element_is_enum,
    ) in connection.execute(_COLUMNS):
        found = columns.setdefault((schema, table, is_partitioned), [])
        if column is not None:
            element_type = DatabaseType(element, is_enum=element_is_enum) if element else None
            database_type = DatabaseType(type_name, element_type, is_enum, modifier)
            found.append(DatabaseColumn(column, database_type))
    keys: dict[tuple[str, str], list[str]] = {}
    for schema, table, column in connection.execute(_PRIMARY_KEYS):
        keys.setdefault((schema, table), []).append(column)
    return tuple(
        DatabaseTable(schema, table, tuple(found), tuple(keys.get((schema, table), ())), is_partitioned)
        for (schema, table, is_partitioned), found in sorted(columns.items())
    )


def read_rows(
    connection: psycopg.Connection, table: DatabaseTable, forms: Mapping[str, Form]
) -> Iterator[pa.RecordBatch]:
    """The table's rows, of the given columns in comparable form. To be read within `one_snapshot`."""
    schema = pa.schema([(name, form.arrow) for name, form in forms.items()])
    # What inherits from a table is a table of its own, unlike what a partitioned table is made of.
    query = sql.SQL("SELECT {} FROM {} {} AS t").format(
        sql.SQL(", ").join(form.database(sql.Identifier("t", name)) for name, form in forms.items()),
        sql.SQL("" if table.is_partitioned else "ONLY"),
        sql.Identifier(table.schema, table.name),
    )
    with connection.cursor(name="tributary_reconcile", binary=True) as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            columns = zip(*rows, strict=True)
            values = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(values, schema=schema)


_COLUMNS = """
    SELECT n.nspname, c.relname, c.relkind = 'p', a.attname,
        t.typname, t.typtype = 'e', nullif(coalesce(t.modifier, a.atttypmod), -1),
        e.typname, coalesce(e.typtype = 'e', false)
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    LEFT JOIN LATERAL (
        WITH RECURSIVE base AS (
            SELECT oid, typbasetype, typtype, typname, typelem, typcategory, nullif(typtypmod, -1) AS modifier
            FROM pg_type WHERE oid = a.atttypid
            UNION ALL
            SELECT p.oid, p.typbasetype, p.typtype, p.typname, p.typelem, p.typcategory,
                coalesce(base.modifier, nullif(p.typtypmod, -1))
            FROM pg_type p JOIN base ON base.typtype = 'd' AND p.oid = base.typbasetype
        )
        SELECT * FROM base WHERE typtype <> 'd'
    ) t ON true
    LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
        AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    ORDER BY n.nspname, c.relname, a.attnum"""
"""Domains are followed down to the type that they are made of; arrays come with their elements' type."""

_PRIMARY_KEYS = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
    WHERE i.indisprimary
    ORDER BY n.nspname, c.relname, k.place"""
