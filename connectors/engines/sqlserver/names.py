"""The physical names in a source's database: user, role, tables of Tributary's own, capture instances."""

from __future__ import annotations

from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA

HEARTBEAT_TABLE = "heartbeat"

INSTANCE_PREFIX = "tributary"
"""The beginning of the name of a capture instance that Tributary makes."""

READER_ROLE = "tributary_reader"
"""The database role that may read the change tables of our capture instances. All lakes share it."""


def connector_user(lake: Lake, source: SqlServerSource) -> str:
    """Return the user that Debezium logs in as: the lake file's user, else Tributary's own.

    It is a login of the server, and a user of the same name in the database.
    """
    if source.connection is not None and source.connection.user is not None:
        return source.connection.user
    return f"tributary_{_own_name(lake, source)}"


def signal_table(lake: Lake, source: SqlServerSource) -> str:
    """Return the name of the table through which we ask Debezium to read tables again.

    Each source of a lake has its own, because a connector obeys every row of its table.
    """
    return f"signals_{_own_name(lake, source)}"


def own_tables(lake: Lake, source: SqlServerSource) -> tuple[tuple[str, str], ...]:
    """Return the schema and the name of the tables that Tributary makes in the database."""
    return ((OWN_SCHEMA, HEARTBEAT_TABLE), (OWN_SCHEMA, signal_table(lake, source)))


def _own_name(lake: Lake, source: SqlServerSource) -> str:
    return f"{lake.name.replace('-', '_')}__{source.name}"
