"""The definitions of a server's tables, from its information_schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pymysql

from connectors.engines.binlog.reading import NOT_THE_SYSTEMS
from connectors.engines.binlog.session import Session, rows_of
from connectors.engines.definitions import ColumnDefinition, TableDefinition
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.table_name import TableName


def read_definitions(session: Session, source: BinlogSource) -> dict[TableName, TableDefinition]:
    """Read the definitions of all tables that match the source's patterns.

    The server tells no identity of a column, only its name. InnoDB has a number for each table, which is
    another one after each change of all rows, but a user sees it only with the right PROCESS. Without it,
    there is the time at which a table's definition was written (`CREATE_TIME`), which more changes alter.
    """
    numbers = _table_numbers(session)
    columns: dict[tuple[str, str], list[ColumnDefinition]] = {}
    for row in rows_of(session, _COLUMNS):
        columns.setdefault((row["db"], row["tbl"]), []).append(_column(row))
    partitions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows_of(session, _PARTITIONS):
        partitions.setdefault((row["db"], row["tbl"]), []).append((row["part"], row["made"]))
    return {
        TableName(source.name, row["db"], row["tbl"]): TableDefinition(
            identity=f"{row['db']}.{row['tbl']}",
            files=_files(
                numbers.get(f"{row['db']}/{row['tbl']}", row["made"]),
                partitions.get((row["db"], row["tbl"]), []),
            ),
            columns=tuple(columns.get((row["db"], row["tbl"]), ())),
            names_identify=True,
        )
        for row in rows_of(session, _TABLES)
        if source.matches(row["db"], row["tbl"])
    }


def _table_numbers(session: Session) -> dict[str, str]:
    """Return InnoDB's numbers by `database/table`. Empty if the session's user may not see them."""
    for view in ("INNODB_TABLES", "INNODB_SYS_TABLES"):  # MySQL's name, and MariaDB's.
        try:
            rows = rows_of(session, f"SELECT NAME AS name, TABLE_ID AS id FROM information_schema.{view}")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (_NO_SUCH_VIEW, _NOT_ALLOWED):
                raise
        else:
            return {str(row["name"]): f"table {row['id']}" for row in rows}
    return {}


_NO_SUCH_VIEW = 1109
_NOT_ALLOWED = 1227


def _column(row: Mapping[str, Any]) -> ColumnDefinition:
    # A NOT NULL column without a default gets the default of its type. A generated column gets its values.
    is_filled = (
        row["default_value"] not in (None, "NULL") or row["nullable"] == "NO" or bool(row["generated"])
    )
    version = " ".join(filter(None, (row["column_type"], row["charset"], row["nullable"], row["generated"])))
    return ColumnDefinition(row["col"], row["col"], version, filled=is_filled)


def _files(made: str, partitions: list[tuple[str, str]]) -> str:
    if not partitions:
        return made
    return f"{made} {hashlib.sha256(json.dumps(sorted(partitions)).encode()).hexdigest()[:16]}"


_TABLES = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, CAST(CREATE_TIME AS CHAR) AS made FROM information_schema.TABLES
WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
"""

_COLUMNS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, COLUMN_NAME AS col, lower(COLUMN_TYPE) AS column_type,
  CHARACTER_SET_NAME AS charset, IS_NULLABLE AS nullable, COLUMN_DEFAULT AS default_value,
  GENERATION_EXPRESSION AS generated
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""

_PARTITIONS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl,
  concat(PARTITION_NAME, ' ', coalesce(SUBPARTITION_NAME, '')) AS part,
  coalesce(CAST(CREATE_TIME AS CHAR), '') AS made
FROM information_schema.PARTITIONS WHERE PARTITION_NAME IS NOT NULL AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
"""
