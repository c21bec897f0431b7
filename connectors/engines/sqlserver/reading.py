"""The tables of a SQL Server database and their rows, as one snapshot sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymssql

from connectors.engines.engine import DatabaseColumn, DatabaseTable, RowsUnreadable
from connectors.engines.sqlserver.catalog import TableFacts
from connectors.engines.sqlserver.forms import readable
from connectors.engines.sqlserver.preparation import HEARTBEAT
from connectors.engines.sqlserver.session import Session, execute, first_row, told_by
from connectors.engines.sqlserver.sql import identifier
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.table_name import TableName

ROWS_AT_ONCE = 20_000


@contextmanager
def one_snapshot(session: Session) -> Iterator[None]:
    """Let all reads in the context see the database as it is now. The session is in autocommit."""
    execute(session, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION;")
    try:
        # The snapshot is of the first read of a row.
        first_row(session, f"SELECT TOP (1) lake FROM {HEARTBEAT}")
        yield
    finally:
        execute(session, "IF @@TRANCOUNT > 0 ROLLBACK; SET TRANSACTION ISOLATION LEVEL READ COMMITTED;")


def tables_of(facts: Sequence[TableFacts]) -> tuple[DatabaseTable, ...]:
    """Return the tables that can be replicated, with the columns that reach the lake."""
    return tuple(
        DatabaseTable(
            table.schema,
            table.table,
            columns=tuple(
                DatabaseColumn(column.name, column.type, None)
                if (how := readable(column.type)) is None
                else DatabaseColumn(
                    column.name, column.type, how.form, how.expression(identifier(column.name))
                )
                for column in table.columns
                if column.is_taken
            ),
            primary_key=table.primary_key,
        )
        for table in facts
        if table.schema != OWN_SCHEMA
    )


def read_rows(session: Session, table: DatabaseTable, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Read these columns of the table's rows in their forms, within `one_snapshot`. Raises RowsUnreadable."""
    by_name = {column.name: column for column in table.columns}
    wanted = [by_name[name] for name in columns]
    schema = pa.schema([(column.name, column.form.arrow) for column in wanted if column.form is not None])
    expressions = ", ".join(column.expression for column in wanted)
    try:
        with session.cursor() as cursor:
            cursor.execute(f"SELECT {expressions} FROM {identifier(table.schema, table.name)}")
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                yield batch_of(rows, schema)
    except pymssql.Error as error:
        raise RowsUnreadable(told_by(error)) from error


def batch_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as the driver gives them as a batch of this schema."""
    arrays = [
        _array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def has_rows(session: Session, table: TableName) -> bool:
    """Return whether a table holds a row. One that the session's user may not read seems to."""
    query = (
        f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {identifier(table.schema, table.table)})"
        " THEN 1 ELSE 0 END AS found"
    )
    try:
        row = first_row(session, query)
    except (pymssql.OperationalError, pymssql.ProgrammingError):
        return True
    return bool(row and row["found"])


def _array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(wanted):
        return pa.array([None if value is None else bool(value) for value in values], wanted)
    if pa.types.is_binary(wanted):
        return pa.array([None if value is None else bytes(value) for value in values], wanted)
    if pa.types.is_integer(wanted):
        return pa.array([None if value is None else int(value) for value in values], wanted)
    return pa.array(values, wanted)
