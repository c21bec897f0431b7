"""What the catalog of a MySQL or MariaDB says of the server and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pymysql

from connectors.engines.binlog.reading import NOT_THE_SYSTEMS
from connectors.engines.binlog.session import Session, rows_of

ORDINARY = "BASE TABLE"


@dataclass(frozen=True)
class ServerFacts:
    """A server.

    variables        its global variables, by their names in lower case. It has not all that are asked for
    ignored          databases that it does not write to the log
    only             the databases that it writes to the log; empty: all others
    is_replica       it repeats the changes of another server
    replicas         the numbers of the servers that repeat its changes. Debezium is in no such list
    retention_hours  how long it keeps the log at least; None: it never removes it
    xa_prepared      how many transactions XA PREPARE has ended since the server's start
    xa_open          how many of them are neither committed nor rolled back
    """

    release: str
    variables: Mapping[str, str]
    ignored: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    is_replica: bool = False
    replicas: frozenset[int] = frozenset()
    retention_hours: float | None = None
    xa_prepared: int = 0
    xa_open: int = 0

    @property
    def is_mariadb(self) -> bool:
        return "-mariadb" in self.release.lower()

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.release.split("-")[0].split(".")[:2]
        return int(major), int(minor)

    @property
    def logs_cascades(self) -> bool:
        """Tell whether the log has the changes that foreign keys make: MySQL's has since 9.6, by default."""
        return self.variables.get("innodb_native_foreign_keys", "").upper() in spellings("OFF")

    @property
    def sql_modes(self) -> frozenset[str]:
        return _names(self.variables.get("sql_mode"))

    @property
    def allows_zero_dates(self) -> bool:
        """Tell whether a session with the server's settings can write the date 0000-00-00."""
        is_strict = not self.sql_modes.isdisjoint({"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"})
        return not (is_strict and "NO_ZERO_DATE" in self.sql_modes)

    def is_on(self, variable: str) -> bool:
        return _is_on(self.variables, variable)


@dataclass(frozen=True)
class TableFacts:
    """One table as the server's catalog describes it.

    engine      keeps the table's rows
    kind        as information_schema.TABLES.TABLE_TYPE has it
    charsets    the character sets of columns with texts
    types       of the columns, as the server calls them, by the columns' names and in their order
    not_null    columns that are NOT NULL
    unique_keys the columns of each unique index over whole columns, also of the primary key
    cascades    foreign keys that change or delete rows of this table when rows of another one change
    """

    schema: str
    table: str
    engine: str
    types: Mapping[str, str]
    not_null: frozenset[str] = frozenset()
    primary_key: frozenset[str] = frozenset()
    unique_keys: tuple[frozenset[str], ...] = ()
    cascades: tuple[str, ...] = ()
    kind: str = ORDINARY
    charsets: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    @property
    def unparsed(self) -> tuple[str, ...]:
        """The columns of a type that Debezium's parser of definitions does not know."""
        return tuple(column for column, data_type in self.types.items() if data_type in _UNPARSED)


_UNPARSED = ("inet4", "inet6", "xmltype")
"""Types of MariaDB that are not in the grammar of Debezium 3.5 (MariaDBParser.g4, `dataType`)."""


def read_server(session: Session) -> ServerFacts:
    """Read what the check of a server needs. The session's user may have few rights."""
    variables = {
        str(row["Variable_name"]).lower(): str(row["Value"])
        for row in rows_of(session, "SHOW GLOBAL VARIABLES")
    }
    status = read_log_status(session) if _is_on(variables, "log_bin") else {}
    return ServerFacts(
        release=variables["version"],
        variables=variables,
        ignored=_names(status.get("Binlog_Ignore_DB")),
        only=_names(status.get("Binlog_Do_DB")),
        is_replica=_is_replica(session),
        replicas=frozenset(int(row["Server_id"]) for row in _first_allowed(session, _REPLICAS) or ()),
        retention_hours=_retention_hours(session, variables),
        xa_prepared=sum(int(row["Value"]) for row in rows_of(session, _XA_PREPARES)),
        # MySQL demands a right that a user may lack.
        xa_open=len(_first_allowed(session, ("XA RECOVER",)) or ()),
    )


def read_log_status(session: Session) -> Mapping[str, Any]:
    """Return the end of the log, `File` and `Position`, and the databases that it leaves out."""
    found = _first_allowed(session, ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS", "SHOW BINLOG STATUS"))
    return found[0] if found else {}


def read_tables(session: Session) -> list[TableFacts]:
    """Read all tables of the server except the system's and Tributary's own."""
    types: dict[tuple[str, str], dict[str, str]] = {}
    not_null: dict[tuple[str, str], set[str]] = {}
    charsets: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows_of(session, _COLUMNS):
        table = (row["db"], row["tbl"])
        types.setdefault(table, {})[row["col"]] = row["data_type"]
        if row["charset"] is not None:
            charsets.setdefault(table, {})[row["col"]] = row["charset"]
        if row["nullable"] == "NO":
            not_null.setdefault(table, set()).add(row["col"])
    keys: dict[tuple[str, str], dict[str, set[str]]] = {}
    for row in rows_of(session, _UNIQUE_KEYS):
        keys.setdefault((row["db"], row["tbl"]), {}).setdefault(row["key_name"], set()).add(row["col"])
    cascades = _cascades(session)
    return [
        TableFacts(
            schema=table[0],
            table=table[1],
            engine=row["engine"] or "",
            kind=row["kind"],
            charsets=charsets.get(table, {}),
            types=types.get(table, {}),
            not_null=frozenset(not_null.get(table, ())),
            primary_key=frozenset(keys.get(table, {}).get("PRIMARY", ())),
            unique_keys=tuple(frozenset(columns) for columns in keys.get(table, {}).values()),
            cascades=tuple(sorted(cascades.get(table, ()))),
        )
        for row in rows_of(session, _TABLES)
        for table in [(row["db"], row["tbl"])]
    ]


def _cascades(session: Session) -> Mapping[tuple[str, str], Sequence[str]]:
    """Return the foreign keys of each table that change rows.

    MariaDB shows no foreign key to a user who may only read its table, such as Debezium's. But it shows
    InnoDB's catalog to one with PROCESS."""
    seen = _rules_by_table(rows_of(session, _CASCADES))
    return {**_rules_by_table(_first_allowed(session, (_CASCADES_OF_INNODB,)) or ()), **seen}


def _rules_by_table(rows: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str], Sequence[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault((row["db"], row["tbl"]), []).append(f"{row['name']}, {row['rule']}")
    return found


def _is_on(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").upper() in spellings("ON")


def spellings(value: str) -> tuple[str, ...]:
    """Return how the server may write a variable's value, in capital letters."""
    return {"ON": ("ON", "1"), "OFF": ("OFF", "0")}.get(value, (value.upper(),))


def _names(text: object) -> frozenset[str]:
    return frozenset(filter(None, str(text or "").split(",")))


def _is_replica(session: Session) -> bool:
    statements = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
    return bool(_first_allowed(session, statements))


def _retention_hours(session: Session, variables: Mapping[str, str]) -> float | None:
    """Return how long the server keeps its log. On Amazon RDS and Aurora, a setting of its own decides."""
    rds = _first_allowed(
        session, ("SELECT value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'",)
    )
    if rds:
        return float(rds[0]["value"] or 0)
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    days = float(variables.get("expire_logs_days") or 0)
    return seconds / 3600 or days * 24 or None


def _first_allowed(session: Session, statements: Sequence[str]) -> list[dict[str, Any]] | None:
    """Return the rows of the first statement that the server knows and the user may run, or None."""
    for statement in statements:
        try:
            return rows_of(session, statement)
        except pymysql.MySQLError:
            if not session.open:
                raise
    return None


_TABLES = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, ENGINE AS engine, TABLE_TYPE AS kind
FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY TABLE_SCHEMA, TABLE_NAME
"""

_COLUMNS = f"""
SELECT TABLE_SCHEMA AS db, TABLE_NAME AS tbl, COLUMN_NAME AS col, lower(DATA_TYPE) AS data_type,
  IS_NULLABLE AS nullable, CHARACTER_SET_NAME AS charset
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS}
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""

# An index over the beginning of a column, or over an expression, does not make the column unique.
_UNIQUE_KEYS = f"""
SELECT s.TABLE_SCHEMA AS db, s.TABLE_NAME AS tbl, s.INDEX_NAME AS key_name, s.COLUMN_NAME AS col
FROM information_schema.STATISTICS s
WHERE s.NON_UNIQUE = 0 AND s.TABLE_SCHEMA NOT IN {NOT_THE_SYSTEMS} AND NOT EXISTS (
  SELECT 1 FROM information_schema.STATISTICS o WHERE o.TABLE_SCHEMA = s.TABLE_SCHEMA
  AND o.TABLE_NAME = s.TABLE_NAME AND o.INDEX_NAME = s.INDEX_NAME
  AND (o.SUB_PART IS NOT NULL OR o.COLUMN_NAME IS NULL))
"""

_CASCADES = f"""
SELECT CONSTRAINT_SCHEMA AS db, TABLE_NAME AS tbl, CONSTRAINT_NAME AS name,
  concat('ON DELETE ', DELETE_RULE, ' ON UPDATE ', UPDATE_RULE) AS rule
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
  OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) AND CONSTRAINT_SCHEMA NOT IN {NOT_THE_SYSTEMS}
"""

# Only MariaDB has this view. Its names are those of files, in which other characters than letters and digits
# are encoded. The bits of a type are those of InnoDB's dict_foreign_t.
_CASCADES_OF_INNODB = f"""
SELECT * FROM (
  SELECT CONVERT(CAST(substring_index(FOR_NAME, '/', 1) AS BINARY) USING filename) AS db,
    CONVERT(CAST(substring_index(FOR_NAME, '/', -1) AS BINARY) USING filename) AS tbl,
    substring_index(ID, '/', -1) AS name,
    concat(
      'ON DELETE ', CASE WHEN TYPE & 1 THEN 'CASCADE' WHEN TYPE & 2 THEN 'SET NULL' ELSE 'RESTRICT' END,
      ' ON UPDATE ', CASE WHEN TYPE & 4 THEN 'CASCADE' WHEN TYPE & 8 THEN 'SET NULL' ELSE 'RESTRICT' END
    ) AS rule
  FROM information_schema.INNODB_SYS_FOREIGN WHERE TYPE & 15
) AS foreign_keys WHERE db NOT IN {NOT_THE_SYSTEMS}
"""

_REPLICAS = ("SHOW REPLICAS", "SHOW SLAVE HOSTS")

_XA_PREPARES = "SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'"
