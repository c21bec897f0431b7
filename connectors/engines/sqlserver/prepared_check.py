"""The query that Debezium's own user can run to see whether its database is prepared."""

from __future__ import annotations

from connectors.engines.sqlserver.capture import is_followed, tables_query
from connectors.engines.sqlserver.names import READER_ROLE, own_tables
from connectors.engines.sqlserver.sql import identifier, literal
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake


def missing_preparation_query(lake: Lake, source: SqlServerSource) -> str:
    """Return a query for what an administrator still has to prepare: one row of text for each problem.

    It names no table of CDC, which are there only once CDC is on."""
    return f"{missing_setup_query(lake, source)}\nUNION ALL {_unrecorded(lake, source)}"


def missing_setup_query(lake: Lake, source: SqlServerSource) -> str:
    """Return the same query without the tables whose changes are not captured."""
    problems = {
        _IS_CDC_ON: "change data capture is off in the database",
        _ALLOWS_SNAPSHOTS: "the database does not allow snapshot isolation",
        _IS_READER: f"the user is not a member of the role {READER_ROLE}",
        **{
            _has_table(schema, table): f"there is no table {schema}.{table} that the user may read"
            for schema, table in own_tables(lake, source)
        },
    }
    return "\nUNION ALL ".join(
        f"SELECT {literal(problem)} AS problem WHERE NOT ({condition})"
        for condition, problem in problems.items()
    )


def _unrecorded(lake: Lake, source: SqlServerSource) -> str:
    """Return the query for the followed tables without a capture instance."""
    followed = tables_query(is_followed(lake, source, ())).strip()
    return (
        "SELECT CONCAT(N'the changes of ', f.[schema], N'.', f.[table], N' are not captured') AS problem"
        f" FROM ({followed}) AS f WHERE EXISTS (SELECT 1 FROM sys.tables AS x"
        " WHERE x.object_id = f.id AND x.is_tracked_by_cdc = 0)"
    )


_IS_CDC_ON = "EXISTS (SELECT 1 FROM sys.databases WHERE database_id = DB_ID() AND is_cdc_enabled = 1)"
# It is null if there is no such role.
_IS_READER = f"COALESCE(IS_MEMBER({literal(READER_ROLE)}), 0) = 1"
_ALLOWS_SNAPSHOTS = (
    "EXISTS (SELECT 1 FROM sys.databases WHERE database_id = DB_ID()"
    " AND snapshot_isolation_state_desc = N'ON')"
)


def _has_table(schema: str, table: str) -> str:
    return f"OBJECT_ID({literal(identifier(schema, table))}) IS NOT NULL"
