"""The tables of a PostgreSQL database and their rows, as one snapshot sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from psycopg import sql

from connectors.engines.engine import DatabaseColumn, DatabaseTable, RowsUnreadable
from connectors.engines.postgres.forms import DatabaseType, readable

ROWS_AT_ONCE = 20_000


@contextmanager
def one_snapshot(connection: psycopg.Connection) -> Iterator[None]:
    """Let all reads in the context see the database as it is now. The connection is in autocommit."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # Debezium's session prints the values that it sends as text, such as the bounds of a range, like
        # this.
        connection.execute("SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'")
        connection.execute("SELECT 1")  # The snapshot is taken by the first query, not by BEGIN.
        yield


def read_tables(connection: psycopg.Connection) -> tuple[DatabaseTable, ...]:
    """Read all tables that can be replicated, ordered by schema and name.

    A partitioned table is one table. Generated columns are left out, because they are not replicated.
    """
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
            found.append(_column(column, DatabaseType(type_name, element_type, is_enum, modifier)))
    keys: dict[tuple[str, str], list[str]] = {}
    for schema, table, column in connection.execute(_PRIMARY_KEYS):
        keys.setdefault((schema, table), []).append(column)
    return tuple(
        DatabaseTable(
            schema,
            table,
            tuple(found),
            tuple(keys.get((schema, table), ())),
            _relation(schema, table, is_partitioned=is_partitioned),
        )
        for (schema, table, is_partitioned), found in sorted(columns.items(), key=lambda item: item[0])
    )


def read_rows(
    connection: psycopg.Connection, table: DatabaseTable, columns: Iterable[str]
) -> Iterator[pa.RecordBatch]:
    """Read these columns of the table's rows in their forms, within `one_snapshot`. Raises RowsUnreadable."""
    by_name = {column.name: column for column in table.columns}
    wanted = [by_name[name] for name in columns]
    schema = pa.schema([(column.name, column.form.arrow) for column in wanted if column.form is not None])
    query = f"SELECT {', '.join(column.expression for column in wanted)} FROM {table.relation}"
    if table.condition is not None:
        query = f"{query} WHERE ({table.condition})"
    try:
        # A savepoint, so that an error does not end the snapshot.
        with (
            connection.transaction(),
            connection.cursor(name="tributary_reconcile", binary=True) as cursor,
        ):
            cursor.execute(query.encode())
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                values = zip(*rows, strict=True)
                arrays = [
                    pa.array(of_column, field.type) for of_column, field in zip(values, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise RowsUnreadable(" ".join(str(error).split())) from error


def _column(name: str, database_type: DatabaseType) -> DatabaseColumn:
    found = readable(database_type)
    if found is None:
        return DatabaseColumn(name, str(database_type), form=None)
    expression = found.expression(sql.Identifier("t", name)).as_string()
    return DatabaseColumn(name, str(database_type), found.form, expression)


def _relation(schema: str, table: str, *, is_partitioned: bool) -> str:
    """Return the table without tables that inherit from it, but with the partitions of a partitioned one."""
    return f"{'' if is_partitioned else 'ONLY '}{sql.Identifier(schema, table).as_string()} AS t"


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
"""Domains are resolved to their base type. An array comes with the type of its elements."""

_PRIMARY_KEYS = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
    WHERE i.indisprimary AND k.place <= i.indnkeyatts
    ORDER BY n.nspname, c.relname, k.place"""
