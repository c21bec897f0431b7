"""The facts about a database of SQL Server from which a first lake file is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pymssql

from connectors.engines.engine import RowsUnreadable
from connectors.engines.sqlserver.catalog import TableFacts, read_server, read_tables
from connectors.engines.sqlserver.session import Session, first_row, rows_of, told_by
from connectors.engines.sqlserver.sql import identifier
from connectors.engines.survey import SAMPLED_ROWS, Survey, SurveyedTable
from tributary.contract.patterns import OWN_SCHEMA

_WITH_TEXT = ("char", "nchar", "varchar", "nvarchar", "text", "ntext", "bigint", "decimal", "numeric", "int")


def survey(session: Session) -> Survey:
    """Read the tables of the session's database, with about how many rows each has."""
    rows = {row["id"]: int(row["about"]) for row in rows_of(session, ROWS)}
    server = read_server(session)
    may = first_row(session, MAY_PREPARE)
    tables = tuple(
        _surveyed(facts, rows.get(facts.number))
        for facts in read_tables(session)
        if facts.schema != OWN_SCHEMA
    )
    return Survey(
        f"SQL Server {server.version} ({server.edition})", tables, may is not None and bool(may["may"])
    )


def sample(session: Session, table: SurveyedTable, columns: Iterable[str]) -> Sequence[Sequence[str | None]]:
    """Return some rows, each with the text of these columns. Raises RowsUnreadable."""
    wanted = list(columns)
    try:
        found = rows_of(session, sample_query(table, wanted))
    except pymssql.Error as error:
        raise RowsUnreadable(told_by(error)) from error
    return [[row[f"c{place}"] for place in range(len(wanted))] for row in found]


def sample_query(table: SurveyedTable, columns: Sequence[str]) -> str:
    texts = ", ".join(
        f"LEFT(CAST({identifier(column)} AS nvarchar(max)), 100) AS c{place}"
        for place, column in enumerate(columns)
    )
    return f"SELECT TOP ({SAMPLED_ROWS}) {texts} FROM {identifier(table.schema, table.table)}"


def _surveyed(facts: TableFacts, rows: int | None) -> SurveyedTable:
    not_null = {column.name for column in facts.columns if not column.is_nullable}
    order = [column.name for column in facts.columns]
    return SurveyedTable(
        schema=facts.schema,
        table=facts.table,
        columns={column.name: column.type for column in facts.columns},
        rows=rows,
        primary_key=facts.primary_key,
        unique_keys=tuple(
            tuple(sorted(key, key=order.index))
            for key in sorted(facts.unique_keys, key=len)
            if key != frozenset(facts.primary_key) and key <= not_null
        ),
        has_text=tuple(column.name for column in facts.columns if column.type in _WITH_TEXT),
    )


ROWS = """
SELECT object_id AS id, SUM(rows) AS about FROM sys.partitions WHERE index_id IN (0, 1) GROUP BY object_id
"""

# Turning change data capture on for a database needs sysadmin, for a table db_owner.
MAY_PREPARE = """
SELECT CASE WHEN IS_SRVROLEMEMBER('sysadmin') = 1 OR IS_ROLEMEMBER('db_owner') = 1 THEN 1 ELSE 0 END AS may
"""
