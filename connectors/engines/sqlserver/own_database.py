"""The SQL for a database of the lake's own on Amazon RDS: how it comes to be, is looked after, and is left.

It runs as the instance's administrator. `connectors.engines.sqlserver.preparation` has the rest.
"""

from __future__ import annotations

from connectors.engines.sqlserver.capture import (
    NEWEST_FIRST,
    RECORDED_COLUMNS,
    fits,
    is_followed,
    tables_query,
)
from connectors.engines.sqlserver.names import INSTANCE_PREFIX, connector_user, own_tables
from connectors.engines.sqlserver.preparation import HEARTBEAT, signals_of
from connectors.engines.sqlserver.sql import identifier, literal
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA

ONE_AT_A_TIME = (
    "DECLARE @lock int;\n"
    "EXEC @lock = sp_getapplock @Resource = N'tributary', @LockMode = 'Exclusive',"
    " @LockOwner = 'Session', @LockTimeout = 60000;\n"
    "IF @lock < 0\n"
    "BEGIN;\n"
    "  THROW 51000, N'another preparation of the database is still running', 1;\n"
    "END;"
)
"""Waits up to a minute until no other session of ours prepares the database. The session's end frees it."""


def creation(source: SqlServerSource) -> str:
    """Return the batch that creates the source's database. CloudFormation cannot name one for SQL Server."""
    return f"IF DB_ID({literal(source.database)}) IS NULL CREATE DATABASE {identifier(source.database)};"


def retention(minutes: int, *, has_standby: bool) -> tuple[str, ...]:
    """Return the batches that set how long changes are kept. CDC must have recorded a table before."""
    here = f"EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = {minutes};"
    # Amazon RDS makes the jobs again after a failover, with what this procedure has stored.
    there = f"EXEC rdsadmin.dbo.rds_set_configuration 'cdc_cleanup_retention', {minutes};"
    return (here, there) if has_standby else (here,)


IS_CDC_ON = (
    "SELECT CAST(is_cdc_enabled AS int) AS is_cdc_enabled FROM sys.databases WHERE database_id = DB_ID()"
)
"""The query for whether CDC is on in the session's database. Each restore turns it off on Amazon RDS."""


def unrecorded_query(lake: Lake, source: SqlServerSource) -> str:
    """Return the query for the followed tables that CDC does not record as they are now.

    With two instances, SQL Server allows no further one: somebody has to end the older one first."""
    followed = tables_query(is_followed(lake, source, ())).strip()
    is_recorded = fits("n.name", "f.instance", "n.recorded", "f.columns")
    return f"""\
SELECT CONCAT(f.[schema], N'.', f.[table]) AS [table], i.instances AS instances
FROM ({followed}) AS f
CROSS APPLY (
  SELECT COUNT(*) AS instances FROM cdc.change_tables AS ct WHERE ct.source_object_id = f.id
) AS i
OUTER APPLY (
  SELECT TOP (1) ct.capture_instance AS name, {RECORDED_COLUMNS} AS recorded
  FROM cdc.change_tables AS ct WHERE ct.source_object_id = f.id
  {NEWEST_FIRST}
) AS n
WHERE CASE WHEN {is_recorded} THEN 1 ELSE 0 END = 0
ORDER BY f.[schema], f.[table]"""


def own_table_names(lake: Lake, source: SqlServerSource) -> tuple[str, ...]:
    """Return Tributary's own tables as `unrecorded_query` names them."""
    return tuple(f"{schema}.{table}" for schema, table in own_tables(lake, source))


def removal_batches(lake: Lake, source: SqlServerSource) -> tuple[str, ...]:
    """Return the batches that remove what belongs to the source alone. The last two remove its user.

    The capture of tables ends with the last source that reads the database."""
    user, signals = connector_user(lake, source), signals_of(lake, source)
    heartbeat = (
        f"DELETE FROM {HEARTBEAT} WHERE lake = {literal(lake.name)} AND source = {literal(source.name)}"
    )
    return (
        # The capture of a table ends when the table goes.
        f"IF OBJECT_ID({literal(signals)}) IS NOT NULL DROP TABLE {signals};",
        f"IF OBJECT_ID({literal(HEARTBEAT)}) IS NOT NULL {heartbeat};",
        _END_OF_CAPTURE,
        f"IF DATABASE_PRINCIPAL_ID({literal(user)}) IS NOT NULL DROP USER {identifier(user)};",
        _end_of_login(user),
    )


def _end_of_login(user: str) -> str:
    """Return the batch that drops a login, unless a database of the server has a user for it.

    After a change of the source's database, the new database has one."""
    return f"""\
DECLARE @sid varbinary(85) = SUSER_SID({literal(user)}), @used bit = 0, @look nvarchar(max);
SELECT @look = STRING_AGG(CAST(N'IF EXISTS (SELECT 1 FROM ' + QUOTENAME(name)
  + N'.sys.database_principals WHERE sid = @sid) SET @used = 1;' AS nvarchar(max)), N' ')
FROM sys.databases WHERE state = 0 AND HAS_DBACCESS(name) = 1;
EXEC sp_executesql @look, N'@sid varbinary(85), @used bit OUTPUT', @sid = @sid, @used = @used OUTPUT;
IF @sid IS NOT NULL AND @used = 0 DROP LOGIN {identifier(user)};"""


_END_OF_CAPTURE = f"""\
IF NOT EXISTS (SELECT 1 FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  WHERE s.name = {literal(OWN_SCHEMA)} AND t.name LIKE N'signals[_]%')
BEGIN
  SET CURSOR_CLOSE_ON_COMMIT OFF;
  DECLARE @schema sysname, @table sysname, @instance sysname;
  DECLARE ours CURSOR LOCAL STATIC FOR
  SELECT s.name, t.name, ct.capture_instance FROM cdc.change_tables AS ct
  JOIN sys.tables AS t ON t.object_id = ct.source_object_id
  JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  WHERE ct.capture_instance LIKE N'{INSTANCE_PREFIX}[_]%';
  OPEN ours;
  FETCH NEXT FROM ours INTO @schema, @table, @instance;
  WHILE @@FETCH_STATUS = 0
  BEGIN
    EXEC sys.sp_cdc_disable_table @source_schema = @schema, @source_name = @table,
      @capture_instance = @instance;
    FETCH NEXT FROM ours INTO @schema, @table, @instance;
  END;
  CLOSE ours;
  DEALLOCATE ours;
END;"""
