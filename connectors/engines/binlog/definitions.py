"""The definitions of a server's tables, from its information_schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pymysql

from connectors.engines.binlog.reading import NOT_THE_SYSTEMS, TABLES_WITH_ROWS
from connectors.engines.binlog.session import Session, rows_of
from connectors.engines.definitions import ColumnDefinition, TableDefinition
from connectors.engines.hidden_columns import as_taken
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName


def read_definitions(
    session: Session, lake: Lake, source: BinlogSource, *, is_mariadb: bool
) -> dict[TableName, TableDefinition]:
    """Read the definitions of all tables that match the source's patterns.

    The server tells no identity of a column, only its name. InnoDB has a number for each table and partition,
    which is another one after each change of all rows, but a user sees it only with the right PROCESS.
    Without it, and for other storage engines, there is the second in which a table's definition was written.
    """
    columns: dict[tuple[str, str], list[ColumnDefinition]] = {}
    for row in rows_of(session, _COLUMNS):
        columns.setdefault((row["db"], row["tbl"]), []).append(_column(row, is_mariadb=is_mariadb))
    numbers = _numbers(session)
    found = {
        TableName(source.name, row["db"], row["tbl"]): TableDefinition(
            identity=f"{row['db']}.{row['tbl']}",
            files=numbers.get((row["db"], row["tbl"]), row["made"] or ""),
            columns=tuple(columns.get((row["db"], row["tbl"]), ())),
            names_identify=True,
        )
        for row in rows_of(session, _TABLES)
        if source.matches(row["db"], row["tbl"])
    }
    return {name: as_taken(definition, lake.policy(name)) for name, definition in found.items()}


def _numbers(session: Session) -> dict[tuple[str, str], str]:
    """Return InnoDB's numbers of each table and its partitions, as one text.

    A name with other characters than letters, digits and underscores is encoded, and left out here. Empty if
    the session's user may not see the numbers.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for row in _innodb_tables(session):
        database, slash, file = str(row["name"]).partition("/")
        table, *part = re.split("#p#", file, maxsplit=1, flags=re.IGNORECASE)
        if slash and "@" not in database + table:
            found.setdefault((database, table), []).append(" ".join([*part, str(row["id"])]))
    return {name: f"InnoDB's {', '.join(sorted(numbers))}" for name, numbers in found.items()}


def _innodb_tables(session: Session) -> list[dict[str, Any]]:
    for view in ("INNODB_TABLES", "INNODB_SYS_TABLES"):  # MySQL's name, and MariaDB's.
        try:
            return rows_of(session, f"SELECT NAME AS name, TABLE_ID AS id FROM information_schema.{view}")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (_NO_SUCH_VIEW, _NOT_ALLOWED):
                raise
    return []


_NO_SUCH_VIEW = 1109
_NOT_ALLOWED = 1227


def _column(row: Mapping[str, Any], *, is_mariadb: bool) -> ColumnDefinition:
    # MariaDB shows the default as an expression, in which a text has quotes. MySQL shows the text itself.
    has_default = row["default_value"] is not None and not (is_mariadb and row["default_value"] == "NULL")
    # A NOT NULL column without a default gets the default of its type. A generated column gets its values.
    is_filled = has_default or row["nullable"] == "NO" or bool(row["expression"])
    version = " ".join(filter(None, (row["column_type"], row["charset"], row["nullable"], row["expression"])))
    return ColumnDefinition(row["col"], row["col"], version, filled=is_filled)


_TABLES = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, CAST(CREATE_TIME AS CHAR) AS made FROM information_schema.TABLES
WHERE TABLE_TYPE IN {TABLES_WITH_ROWS} AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
"""

_COLUMNS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, COLUMN_NAME AS col, lower(COLUMN_TYPE) AS column_type,
  CHARACTER_SET_NAME AS charset, IS_NULLABLE AS nullable, COLUMN_DEFAULT AS default_value,
  GENERATION_EXPRESSION AS expression
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""
