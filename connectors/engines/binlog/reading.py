"""The tables of a MySQL or MariaDB server and their rows, as one snapshot sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from connectors.engines.binlog.forms import readable
from connectors.engines.binlog.names import OWN_DATABASE
from connectors.engines.binlog.session import Session, execute, first_row, rows_of, told_by
from connectors.engines.binlog.sql import identifier
from connectors.engines.engine import DatabaseColumn, DatabaseTable, RowsUnreadable
from tributary.contract.table_name import TableName

ROWS_AT_ONCE = 20_000

SYSTEM_DATABASES = ("information_schema", "mysql", "performance_schema", "sys", OWN_DATABASE)
"""Databases without tables for the lake."""

TABLES_WITH_ROWS = "('BASE TABLE', 'SYSTEM VERSIONED')"
"""The kinds of tables with rows (information_schema.TABLES.TABLE_TYPE). The second one is MariaDB's."""

NOT_THE_SYSTEMS = f"({', '.join(repr(name) for name in SYSTEM_DATABASES)})"


@contextmanager
def one_snapshot(session: Session) -> Iterator[None]:
    """Let all reads in the context see the databases as they are now. The session is in autocommit."""
    execute(session, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    execute(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    try:
        yield
    finally:
        if session.open:
            session.rollback()


def read_tables(session: Session) -> tuple[DatabaseTable, ...]:
    """Read all tables that can be replicated, ordered by database and name."""
    columns: dict[tuple[str, str], list[DatabaseColumn]] = {}
    for row in rows_of(session, _COLUMNS):
        found = columns.setdefault((row["db"], row["tbl"]), [])
        how = readable(row["data_type"], row["column_type"], is_nullable=row["nullable"] == "YES")
        quoted = identifier(row["col"])
        found.append(
            DatabaseColumn(row["col"], row["column_type"], None)
            if how is None
            else DatabaseColumn(row["col"], row["column_type"], how.form, how.expression(quoted))
        )
    keys: dict[tuple[str, str], list[str]] = {}
    for row in rows_of(session, _PRIMARY_KEYS):
        keys.setdefault((row["db"], row["tbl"]), []).append(row["col"])
    return tuple(
        DatabaseTable(database, table, tuple(found), tuple(keys.get((database, table), ())))
        for (database, table), found in sorted(columns.items(), key=lambda item: item[0])
    )


def read_rows(session: Session, table: DatabaseTable, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Read these columns of the table's rows in their forms, within `one_snapshot`. Raises RowsUnreadable."""
    by_name = {column.name: column for column in table.columns}
    wanted = [by_name[name] for name in columns]
    schema = pa.schema([(column.name, column.form.arrow) for column in wanted if column.form is not None])
    expressions = ", ".join(column.expression for column in wanted)
    try:
        with session.cursor(SSCursor) as cursor:
            condition = "" if table.condition is None else f" WHERE {table.condition}"
            cursor.execute(f"SELECT {expressions} FROM {identifier(table.schema, table.name)}{condition}")
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                arrays = [
                    _array(values, field.type)
                    for values, field in zip(zip(*rows, strict=True), schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except pymysql.Error as error:
        if not session.open:
            raise
        raise RowsUnreadable(told_by(error)) from error


def has_rows(session: Session, table: TableName) -> bool:
    """Return whether a table holds a row. One that the session's user may not read seems to."""
    query = f"SELECT EXISTS (SELECT 1 FROM {identifier(table.schema, table.table)}) AS found"
    try:
        row = first_row(session, query)
    except (pymysql.err.OperationalError, pymysql.err.ProgrammingError):
        return True
    return bool(row and row["found"])


def is_denied(session: Session, table: TableName) -> bool:
    """Return whether the session's user may not read a table of this name.

    The server looks at the user's rights first, and then does not say whether there is such a table."""
    try:
        first_row(session, f"SELECT 1 FROM {identifier(table.schema, table.table)} LIMIT 0")
    except pymysql.err.MySQLError as error:
        if not session.open:
            raise
        return error.args[0] in _DENIED
    return False


_DENIED = (ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR)


def _array(values: tuple[Any, ...], wanted: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(wanted):
        return pa.array([None if value is None else bool(value) for value in values], wanted)
    if pa.types.is_binary(wanted):
        return pa.array([None if value is None else bytes(value) for value in values], wanted)
    if pa.types.is_integer(wanted):
        return pa.array([None if value is None else int(value) for value in values], wanted)
    if pa.types.is_string(wanted):
        return pa.array([value.decode() if isinstance(value, bytes) else value for value in values], wanted)
    return pa.array(values, wanted)


_COLUMNS = f"""
SELECT c.TABLE_SCHEMA AS db, c.TABLE_NAME AS tbl, c.COLUMN_NAME AS col, lower(c.DATA_TYPE) AS data_type,
  lower(c.COLUMN_TYPE) AS column_type, c.IS_NULLABLE AS nullable
FROM information_schema.COLUMNS c JOIN information_schema.TABLES t
  ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
WHERE t.TABLE_TYPE IN {TABLES_WITH_ROWS} AND c.TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION
"""

_PRIMARY_KEYS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, COLUMN_NAME AS col FROM information_schema.STATISTICS
WHERE INDEX_NAME = 'PRIMARY' AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY TABLE_SCHEMA, TABLE_NAME, SEQ_IN_INDEX
"""
