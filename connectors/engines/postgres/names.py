"""The physical names in a source's PostgreSQL: slot, publication, role, heartbeat table and signal table."""

from __future__ import annotations

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.naming import NameNotAllowed
from tributary.contract.patterns import OWN_SCHEMA

MAX_NAME = 63
"""PostgreSQL's limit in bytes (NAMEDATALEN - 1)."""

HEARTBEAT_SCHEMA = OWN_SCHEMA
HEARTBEAT_TABLE = "heartbeat"


def replication_slot(lake: Lake, source: PostgresSource) -> str:
    """Return the name of the source's slot: letters, digits and underscores. Raises NameNotAllowed."""
    name = f"tributary_{lake.name.replace('-', '_')}__{source.name}"
    if len(name.encode()) > MAX_NAME:
        raise NameNotAllowed(
            "PostgreSQL would truncate the name of the replication slot",
            where=f"[source.{source.name}]",
            found=f"{name}, of {len(name.encode())} bytes",
            expected=f"{MAX_NAME} bytes at most",
            remedy="Give the lake or the source a shorter name.",
        )
    return name


def publication(lake: Lake, source: PostgresSource) -> str:
    """Return the name of the source's publication."""
    return replication_slot(lake, source)


def signal_table(lake: Lake, source: PostgresSource) -> str:
    """Return the name of the table that asks Debezium to read tables again.

    Each source of a lake has its own, because a connector obeys every row of its table. The table is in the
    heartbeat's schema.
    """
    return f"signals_{replication_slot(lake, source).removeprefix('tributary_')}"


def replication_role(lake: Lake, source: PostgresSource) -> str:
    """Return the role that Tributary creates for Debezium."""
    return replication_slot(lake, source)


def replication_user(lake: Lake, source: PostgresSource) -> str:
    """Return the user that Debezium logs in as: the lake file's user, else Tributary's own role."""
    if source.connection is not None and source.connection.user is not None:
        return source.connection.user
    return replication_role(lake, source)
