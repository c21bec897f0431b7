"""The SQL that prepares a database for Debezium: CDC, a user with rights, two tables, capture instances."""

from __future__ import annotations

from collections.abc import Collection

import pymssql

from connectors.engines.sqlserver.capture import (
    NEWEST_FIRST,
    RECORDED_COLUMNS,
    fits,
    is_followed,
    tables_query,
)
from connectors.engines.sqlserver.names import HEARTBEAT_TABLE, READER_ROLE, connector_user, signal_table
from connectors.engines.sqlserver.session import Session, execute, number_of, told_by
from connectors.engines.sqlserver.sql import identifier, literal
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA
from tributary.contract.remedies import BringUp
from tributary.contract.table_name import TableName

HEARTBEAT = identifier(OWN_SCHEMA, HEARTBEAT_TABLE)


class DatabaseSetupFailed(TributaryError):
    """The SQL that prepares the database failed."""


def signals_of(lake: Lake, source: SqlServerSource) -> str:
    """Return the source's signal table as SQL names it."""
    return identifier(OWN_SCHEMA, signal_table(lake, source))


def heartbeat_query(lake: Lake, source: SqlServerSource) -> str:
    """Return the statement that Debezium runs with each heartbeat. It writes once a minute at most.

    In a quiet database, the offset would otherwise stay behind what the server still keeps, and a connector
    that starts again could not resume. Debezium's session for this may be in another database.
    """
    table = f"{identifier(source.database)}.{HEARTBEAT}"
    return _beat(lake, source, table, " AND h.beaten_at < DATEADD(minute, -1, SYSUTCDATETIME())")


def heartbeat_statement(lake: Lake, source: SqlServerSource) -> str:
    """Return a statement that writes a captured change, up to which Debezium then reads."""
    return _beat(lake, source, HEARTBEAT)


def _beat(lake: Lake, source: SqlServerSource, table: str, condition: str = "") -> str:
    lake_name, source_name = literal(lake.name), literal(source.name)
    return (
        f"MERGE INTO {table} WITH (HOLDLOCK) AS h"
        f" USING (SELECT {lake_name} AS lake, {source_name} AS source) AS n"
        " ON h.lake = n.lake AND h.source = n.source"
        f" WHEN MATCHED{condition} THEN UPDATE SET beaten_at = SYSUTCDATETIME()"
        " WHEN NOT MATCHED THEN INSERT (lake, source, beaten_at) VALUES (n.lake, n.source, SYSUTCDATETIME());"
    )


def setup_script(lake: Lake, source: SqlServerSource, untaken: Collection[TableName] = ()) -> str:
    """Return the SQL for an administrator, if Tributary has no administrator's password.

    `GO` is how SQL Server's own programs end a batch of statements."""
    batches = (in_database(source), *setup_batches(lake, source, untaken))
    user = connector_user(lake, source)
    return (
        "-- Prepares the database for Debezium. It may run any number of times. Run it again after a change\n"
        "-- of a table's columns: it then records the table in its new form, beside the old one.\n"
        "SET NOCOUNT ON;\nGO\n"
        + "".join(f"{batch}\nGO\n" for batch in batches)
        + "-- Then set the user's password:\n"
        + f"-- ALTER LOGIN {identifier(user)} WITH PASSWORD = '…';\n"
    )


def in_database(source: SqlServerSource) -> str:
    """Return the statement after which a session is in the source's database."""
    return f"USE {identifier(source.database)};"


def setup_batches(
    lake: Lake, source: SqlServerSource, untaken: Collection[TableName] = ()
) -> tuple[str, ...]:
    """Return the SQL that prepares the database, as batches to run in this order. It sets no password."""
    return (
        *batches_before_capture(lake, source),
        capture_batch(lake, source, untaken),
        # The first change that CDC records gives the log a position from which a snapshot can start.
        heartbeat_statement(lake, source),
    )


def batches_before_capture(lake: Lake, source: SqlServerSource) -> tuple[str, ...]:
    """Return the batches for CDC, Debezium's user and Tributary's own tables."""
    user = connector_user(lake, source)
    quoted, role, signals = identifier(user), identifier(READER_ROLE), signals_of(lake, source)
    database = literal(source.database)
    return (
        # Amazon RDS has no administrator of the whole server, but a procedure of its own.
        "IF EXISTS (SELECT 1 FROM sys.databases WHERE database_id = DB_ID() AND is_cdc_enabled = 0)\n"
        "BEGIN\n"
        "  IF OBJECT_ID(N'msdb.dbo.rds_cdc_enable_db') IS NULL EXEC sys.sp_cdc_enable_db;\n"
        f"  ELSE EXEC msdb.dbo.rds_cdc_enable_db {database};\n"
        "END;",
        # A snapshot then reads all tables as they are at one moment. This waits for running transactions.
        "IF EXISTS (SELECT 1 FROM sys.databases WHERE database_id = DB_ID()"
        " AND snapshot_isolation_state_desc <> N'ON')\n"
        f"  ALTER DATABASE {identifier(source.database)} SET ALLOW_SNAPSHOT_ISOLATION ON;",
        # Nobody knows the first password.
        f"IF SUSER_ID({literal(user)}) IS NULL\n"
        "BEGIN\n"
        f"  DECLARE @login nvarchar(max) = N'CREATE LOGIN ' + QUOTENAME({literal(user)})"
        " + N' WITH PASSWORD = '\n"
        "    + QUOTENAME(N'aA1!' + CONVERT(nvarchar(64), CRYPT_GEN_RANDOM(24), 2), N'''');\n"
        "  EXEC (@login);\n"
        "END;",
        f"IF DATABASE_PRINCIPAL_ID({literal(user)}) IS NULL\n  CREATE USER {quoted} FOR LOGIN {quoted};",
        f"IF DATABASE_PRINCIPAL_ID({literal(READER_ROLE)}) IS NULL\n  CREATE ROLE {role};",
        f"ALTER ROLE {role} ADD MEMBER {quoted};",
        f"GRANT SELECT ON SCHEMA::cdc TO {role};",
        # To see whether the capture job has come to the log's end.
        f"GRANT VIEW DATABASE STATE TO {quoted};",
        f"IF SCHEMA_ID({literal(OWN_SCHEMA)}) IS NULL\n  EXEC (N'CREATE SCHEMA {identifier(OWN_SCHEMA)}');",
        f"IF OBJECT_ID({literal(HEARTBEAT)}) IS NULL\n"
        f"  CREATE TABLE {HEARTBEAT} (lake varchar(100) NOT NULL, source varchar(100) NOT NULL,"
        " beaten_at datetime2(3) NOT NULL, PRIMARY KEY (lake, source));",
        f"IF OBJECT_ID({literal(signals)}) IS NULL\n"
        f"  CREATE TABLE {signals} (id varchar(64) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL,"
        " data nvarchar(4000) NULL);",
        f"GRANT SELECT, INSERT, UPDATE ON {HEARTBEAT} TO {quoted};",
        f"GRANT SELECT, INSERT, DELETE ON {signals} TO {quoted};",
    )


def capture_batch(lake: Lake, source: SqlServerSource, untaken: Collection[TableName] = ()) -> str:
    """Return the batch that lets the user read the followed tables, and records those that are not recorded.

    A table whose columns have changed gets a second capture instance, if it has one only."""
    user = identifier(connector_user(lake, source)).replace("'", "''")
    followed = tables_query(is_followed(lake, source, sorted(untaken))).strip()
    is_recorded = fits("@newest", "@instance", "@recorded", "@columns")
    return f"""\
SET CURSOR_CLOSE_ON_COMMIT OFF;
DECLARE @schema sysname, @table sysname, @id int, @columns nvarchar(max), @instance sysname, @partitioned int;
DECLARE @newest sysname, @recorded nvarchar(max), @instances int, @switch bit, @grant nvarchar(max);
DECLARE @failed nvarchar(2000) = N'';
DECLARE followed CURSOR LOCAL STATIC FOR
{followed};
OPEN followed;
FETCH NEXT FROM followed INTO @schema, @table, @id, @columns, @instance, @partitioned;
WHILE @@FETCH_STATUS = 0
BEGIN
  SET @grant = N'GRANT SELECT ON OBJECT::' + QUOTENAME(@schema) + N'.' + QUOTENAME(@table) + N' TO {user}';
  EXEC (@grant);
  SELECT @newest = NULL, @recorded = NULL, @switch = CASE WHEN @partitioned = 1 THEN 0 ELSE 1 END;
  SELECT @instances = COUNT(*) FROM cdc.change_tables WHERE source_object_id = @id;
  SELECT TOP (1) @newest = ct.capture_instance, @recorded = {RECORDED_COLUMNS}
  FROM cdc.change_tables AS ct WHERE ct.source_object_id = @id
  {NEWEST_FIRST};
  IF {is_recorded}
    PRINT N'recorded already: ' + @schema + N'.' + @table;
  ELSE IF @instances > 1
    PRINT N'NOT RECORDED as it is now, because it has two capture instances: ' + @schema + N'.' + @table;
  ELSE
  BEGIN TRY
    EXEC sys.sp_cdc_enable_table @source_schema = @schema, @source_name = @table,
      @role_name = N'{READER_ROLE}', @capture_instance = @instance, @supports_net_changes = 0,
      @captured_column_list = @columns, @allow_partition_switch = @switch;
  END TRY
  BEGIN CATCH
    SET @failed = CONCAT(@failed, @schema, N'.', @table, N': ', ERROR_MESSAGE(), N' ');
  END CATCH;
  FETCH NEXT FROM followed INTO @schema, @table, @id, @columns, @instance, @partitioned;
END;
CLOSE followed;
DEALLOCATE followed;
IF @failed <> N'' RAISERROR (N'%s', 16, 1, @failed);"""


def removal_of(schema: str, table: str, instance: str) -> str:
    """Return the statement that ends a capture instance, and removes its changes."""
    return (
        f"EXEC sys.sp_cdc_disable_table @source_schema = {literal(schema)}, @source_name = {literal(table)}, "
        f"@capture_instance = {literal(instance)};"
    )


def password_statement(lake: Lake, source: SqlServerSource, password: str) -> str:
    """Return the statement that gives Debezium's user a password. The server keeps it out of its traces."""
    return f"ALTER LOGIN {identifier(connector_user(lake, source))} WITH PASSWORD = {literal(password)};"


def apply_setup(
    admin: Session, lake: Lake, source: SqlServerSource, password: str, untaken: Collection[TableName]
) -> None:
    """Prepare the database, and give Debezium's user this password. Raises DatabaseSetupFailed."""
    try:
        for batch in setup_batches(lake, source, untaken):
            execute(admin, batch)
        execute(admin, password_statement(lake, source, password))
    except pymssql.Error as error:
        raise DatabaseSetupFailed(
            "the database cannot be prepared",
            where=f"source {source.name}, database {source.database}",
            found=told_by(error),
            remedy=[
                "Name an admin_user that is a sysadmin (on Amazon RDS: the master user). "
                "Without an admin_user, the start writes the SQL to a file, for an administrator to run.",
                BringUp(),
            ],
        ) from error


def forget(admin: Session, lake: Lake, source: SqlServerSource) -> None:
    """Remove the requests that a connector would take up again. The rest of its state is in Kafka."""
    try:
        execute(admin, f"DELETE FROM {signals_of(lake, source)};")
    except pymssql.Error as error:
        if number_of(error) != _NO_SUCH_OBJECT:
            raise


_NO_SUCH_OBJECT = 208
