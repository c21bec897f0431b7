"""What a server and a database say of themselves, as facts that the preflight judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pymssql

from connectors.engines.sqlserver.capture import (
    COLUMNS,
    INSTANCES,
    KIND,
    SYSTEM_SCHEMAS,
    Captures,
    captures_of,
    tables_query,
)
from connectors.engines.sqlserver.session import Session, first_row, rows_of
from connectors.engines.sqlserver.sql import literal


@dataclass(frozen=True)
class ServerFacts:
    """A server, and one of its databases.

    None as a value: the session's user may not know.

    engine_edition      what kind of server it is (SERVERPROPERTY)
    edition             such as `Standard Edition (64-bit)`
    snapshot_isolation  whether the database allows this isolation
    agent_runs          SQL Server Agent, which runs the jobs of CDC
    seconds_behind      since the capture job has recorded anything; it does so every five minutes at least
    retention_minutes   how long the cleanup job keeps changes
    keeps_updates       a trace flag lets the server record a changed key as an update
    is_read_only        the database, for example on a secondary replica
    """

    version: str
    engine_edition: int
    edition: str
    is_cdc_enabled: bool = True
    snapshot_isolation: bool = True
    agent_runs: bool | None = None
    seconds_behind: int | None = None
    retention_minutes: int | None = None
    keeps_updates: bool | None = None
    is_read_only: bool = False

    @property
    def release(self) -> int:
        """The number of the version, such as 16 for SQL Server 2022."""
        return int(self.version.split(".")[0])


@dataclass(frozen=True)
class ColumnFacts:
    """A column.

    type      its type's name in sys.types, that of an alias as what it stands for
    scale     of its type: the decimal places, also of seconds
    is_taken  whether its values can reach the lake
    """

    name: str
    number: int
    type: str
    scale: int = 0
    is_nullable: bool = True
    is_taken: bool = True
    is_computed: bool = False


@dataclass(frozen=True)
class TableFacts:
    """One table as the database's catalog describes it.

    number       identifies it, whatever its name is
    kind         what the server cannot record, such as a table in memory; empty: an ordinary table
    unique_keys  the columns of each unique index over all rows, also of the primary key
    captures     None: CDC is off, or the session's user may not see it
    """

    schema: str
    table: str
    number: int
    columns: tuple[ColumnFacts, ...]
    kind: str = ""
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[frozenset[str], ...] = ()
    captures: Captures | None = None

    @property
    def by_name(self) -> Mapping[str, ColumnFacts]:
        return {column.name: column for column in self.columns}

    @property
    def taken(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.is_taken)


@dataclass
class _Found:
    columns: list[ColumnFacts] = field(default_factory=list)
    keys: dict[str, list[str]] = field(default_factory=dict)
    primary: str | None = None


def read_server(session: Session) -> ServerFacts:
    """Read what the check of a server needs. The session's user may have few rights."""
    row = first_row(session, _SERVER)
    assert row is not None
    agent = _first_allowed(session, _AGENT)
    jobs = _rows_allowed(session, "EXEC sys.sp_cdc_help_jobs")
    flags = _rows_allowed(session, "DBCC TRACESTATUS (8207, -1) WITH NO_INFOMSGS")
    behind = _first_allowed(session, SECONDS_BEHIND)
    return ServerFacts(
        version=row["version"],
        engine_edition=row["engine_edition"],
        edition=row["edition"],
        is_cdc_enabled=bool(row["is_cdc_enabled"]),
        snapshot_isolation=bool(row["snapshot_isolation"]),
        agent_runs=None if agent is None else bool(agent["runs"]),
        seconds_behind=None if behind is None else behind["seconds"],
        retention_minutes=_retention_of(jobs),
        keeps_updates=None if flags is None else any(flag.get("Status") == 1 for flag in flags),
        is_read_only=bool(row["is_read_only"]),
    )


def read_tables(session: Session) -> list[TableFacts]:
    """Read all tables of the database except the system's, ordered by schema and name."""
    found: dict[tuple[str, str], _Found] = {}
    for row in rows_of(session, COLUMNS):
        found.setdefault((row["schema"], row["table"]), _Found()).columns.append(_column(row))
    for row in rows_of(session, _KEYS):
        of_table = found.setdefault((row["schema"], row["table"]), _Found())
        of_table.keys.setdefault(row["name"], []).append(row["column"])
        if row["is_primary"]:
            of_table.primary = row["name"]
    tables = rows_of(session, _TABLES)
    captures = read_captures(session, tables, found_columns(tables, found))
    return [
        TableFacts(
            schema=row["schema"],
            table=row["table"],
            number=row["id"],
            columns=tuple(of_table.columns),
            kind=row["kind"],
            primary_key=() if of_table.primary is None else tuple(of_table.keys[of_table.primary]),
            unique_keys=tuple(frozenset(key) for key in of_table.keys.values()),
            captures=None if captures is None else captures.get(row["id"]),
        )
        for row in tables
        for of_table in [found.get((row["schema"], row["table"]), _Found())]
    ]


def found_columns(
    tables: Sequence[Mapping[str, Any]], found: Mapping[tuple[str, str], _Found]
) -> Mapping[int, tuple[str, ...]]:
    """Return the columns that can be taken, by the tables' numbers."""
    return {
        row["id"]: tuple(
            column.name
            for column in found.get((row["schema"], row["table"]), _Found()).columns
            if column.is_taken
        )
        for row in tables
    }


def read_captures(
    session: Session, tables: Sequence[Mapping[str, Any]], columns: Mapping[int, tuple[str, ...]]
) -> Mapping[int, Captures] | None:
    """Read the capture instances of all tables, or return None if CDC is off or the user may not see it."""
    instances = _rows_allowed(session, INSTANCES)
    if instances is None or not tables:
        return None
    return captures_of(rows_of(session, tables_query()), columns, instances)


def read_unseen(session: Session) -> frozenset[str] | None:
    """Return the numbers of the tables that are captured, but hidden from the user.

    None: the user may not see what is captured, so that any table can be hidden."""
    rows = _rows_allowed(session, _UNSEEN)
    if rows is not None:
        return frozenset(str(row["id"]) for row in rows)
    server = _first_allowed(session, _SERVER)
    return None if server is not None and server["is_cdc_enabled"] else frozenset()


def _column(row: Mapping[str, Any]) -> ColumnFacts:
    return ColumnFacts(
        name=row["column"],
        number=row["id"],
        type=row["type"] or "",
        scale=row["scale"],
        is_nullable=bool(row["nullable"]),
        is_taken=bool(row["taken"]),
        is_computed=bool(row["computed"]),
    )


def _retention_of(jobs: list[dict[str, Any]] | None) -> int | None:
    retentions = [job["retention"] for job in jobs or () if job.get("job_type") == "cleanup"]
    return int(retentions[0]) if retentions else None


def _rows_allowed(session: Session, query: str) -> list[dict[str, Any]] | None:
    """Return a query's rows, or None if the server does not know it or the user may not run it."""
    try:
        return rows_of(session, query)
    except pymssql.Error:
        # The driver closes a session that the server has ended.
        rows_of(session, "SELECT 1 AS still_there")
        return None


def _first_allowed(session: Session, query: str) -> dict[str, Any] | None:
    return next(iter(_rows_allowed(session, query) or ()), None)


_SERVER = """
SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
  CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine_edition,
  CAST(SERVERPROPERTY('Edition') AS nvarchar(128)) AS edition,
  CAST(d.is_cdc_enabled AS int) AS is_cdc_enabled,
  CASE WHEN d.snapshot_isolation_state_desc = N'ON' THEN 1 ELSE 0 END AS snapshot_isolation,
  CASE WHEN DATABASEPROPERTYEX(d.name, 'Updateability') = 'READ_ONLY' THEN 1 ELSE 0 END AS is_read_only
FROM sys.databases AS d WHERE d.database_id = DB_ID()
"""

_AGENT = """
SELECT CASE WHEN status = 4 THEN 1 ELSE 0 END AS runs FROM sys.dm_server_services
WHERE servicename LIKE N'SQL Server Agent (%'
"""

_UNSEEN = """
SELECT DISTINCT ct.source_object_id AS id FROM cdc.change_tables AS ct
WHERE COALESCE(ct.has_drop_pending, 0) = 0
  AND NOT EXISTS (SELECT 1 FROM sys.tables AS t WHERE t.object_id = ct.source_object_id)
"""

# The times of the log are the server's local ones.
SECONDS_BEHIND = "SELECT DATEDIFF(second, MAX(tran_end_time), GETDATE()) AS seconds FROM cdc.lsn_time_mapping"

_TABLES = f"""
SELECT s.name AS [schema], t.name AS [table], t.object_id AS id,
  {KIND} AS kind
FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id
WHERE t.is_ms_shipped = 0 AND s.name NOT IN ({", ".join(map(literal, SYSTEM_SCHEMAS))})
ORDER BY s.name, t.name
"""

# An index with a condition says nothing about the other rows.
_KEYS = """
SELECT s.name AS [schema], t.name AS [table], i.name AS name, CAST(i.is_primary_key AS int) AS is_primary,
  c.name AS [column]
FROM sys.indexes AS i
JOIN sys.tables AS t ON t.object_id = i.object_id AND t.is_ms_shipped = 0
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
ORDER BY s.name, t.name, i.index_id, k.key_ordinal
"""
