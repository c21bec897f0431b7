"""Load TICKIT into a PostgreSQL database in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import LiteralString

import psycopg
from psycopg import sql

from tributary.tickit.generator import Row
from tributary.tickit.schema import INDEXES, SCHEMA, TABLES, TickitTable

Progress = Callable[[str, int], None]
"""Called with the name of each loaded table and its number of rows."""


def write_tickit(
    connection: psycopg.Connection,
    rows: Mapping[str, list[Row]],
    progress: Progress = lambda *_: None,
    *,
    tables: Sequence[TickitTable] = TABLES,
    indexes: Sequence[LiteralString] = INDEXES,
) -> int:
    """Create the tables and copy the rows, all or nothing. Return the number of rows.

    `rows` comes from `generator.generate`. Raises psycopg.errors.DuplicateTable if a table exists.
    """
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(SCHEMA)))
        for table in tables:
            cursor.execute(table.ddl)
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
            )
            with cursor.copy(statement) as copy:
                for row in rows[table.name]:
                    copy.write_row(row)
            progress(table.name, len(rows[table.name]))
        for index in indexes:
            cursor.execute(index)
    connection.execute("ANALYZE")
    return sum(len(rows[table.name]) for table in tables)


def is_loaded(connection: psycopg.Connection, tables: Sequence[TickitTable] = TABLES) -> bool:
    """Tell whether the database has all of these tables."""
    query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = ANY(%s)"
    row = connection.execute(query, (SCHEMA, [table.name for table in tables])).fetchone()
    return row is not None and row[0] == len(tables)
