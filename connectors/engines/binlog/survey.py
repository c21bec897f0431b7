"""The facts about a server of MySQL or MariaDB from which a first lake file is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pymysql

from connectors.engines.binlog.catalog import ORDINARY, read_server, read_tables
from connectors.engines.binlog.reading import NOT_THE_SYSTEMS, TABLES_WITH_ROWS
from connectors.engines.binlog.session import Session, rows_of, told_by
from connectors.engines.binlog.sql import identifier
from connectors.engines.engine import RowsUnreadable
from connectors.engines.survey import SAMPLED_ROWS, Survey, SurveyedTable

_WITH_TEXT = (
    *("char", "varchar", "tinytext", "text", "mediumtext", "longtext"),
    *("bigint", "decimal", "int"),
)


def survey(session: Session, database: str) -> Survey:
    """Read the tables of one database, or of all, with about how many rows each has."""
    rows = {(row["db"], row["tbl"]): row["about"] for row in rows_of(session, _ROWS)}
    server = read_server(session)
    tables = tuple(
        SurveyedTable(
            schema=facts.schema,
            table=facts.table,
            columns=facts.types,
            rows=rows.get((facts.schema, facts.table)),
            primary_key=tuple(column for column in facts.columns if column in facts.primary_key),
            unique_keys=tuple(
                tuple(column for column in facts.columns if column in key)
                for key in sorted(facts.unique_keys, key=len)
                if key != facts.primary_key and key <= facts.not_null
            ),
            has_text=tuple(column for column, kind in facts.types.items() if kind in _WITH_TEXT),
        )
        for facts in read_tables(session)
        if database in ("", facts.schema) and facts.kind == ORDINARY
    )
    grants = [next(iter(row.values())) for row in rows_of(session, "SHOW GRANTS")]
    may_prepare = any(
        right in str(grant).upper() for grant in grants for right in ("ALL PRIVILEGES", "CREATE USER")
    )
    title = "MariaDB" if server.is_mariadb else "MySQL"
    return Survey(f"{title} {server.release.split('-')[0]}", tables, may_prepare)


def sample(session: Session, table: SurveyedTable, columns: Iterable[str]) -> Sequence[Sequence[str | None]]:
    """Return some rows, each with the text of these columns. Raises RowsUnreadable."""
    wanted = list(columns)
    texts = ", ".join(
        f"left(cast({identifier(column)} AS char), 100) AS c{place}" for place, column in enumerate(wanted)
    )
    query = f"SELECT {texts} FROM {identifier(table.schema, table.table)} LIMIT {SAMPLED_ROWS}"
    try:
        found = rows_of(session, query)
    except pymysql.Error as error:
        raise RowsUnreadable(told_by(error)) from error
    return [[row[f"c{place}"] for place in range(len(wanted))] for row in found]


_ROWS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, TABLE_ROWS AS about FROM information_schema.TABLES
WHERE TABLE_TYPE IN {TABLES_WITH_ROWS} AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
"""
