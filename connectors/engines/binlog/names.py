"""The physical names in a source's server: user, tables of Tributary's own, the connector's number."""

from __future__ import annotations

import hashlib

from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake
from tributary.contract.patterns import OWN_SCHEMA

MAX_USER = 32
"""MySQL's limit in characters. MariaDB allows 128."""
MAX_TABLE = 64

OWN_DATABASE = OWN_SCHEMA
HEARTBEAT_TABLE = "heartbeat"

_FIRST_SERVER_ID = 2**31
"""The lowest id that Tributary chooses. People choose low numbers for their servers."""


def connector_user(lake: Lake, source: BinlogSource) -> str:
    """Return the user that Debezium logs in as: the lake file's user, else Tributary's own."""
    if source.connection is not None and source.connection.user is not None:
        return source.connection.user
    return _at_most(MAX_USER, f"tributary_{_own_name(lake, source)}")


def signal_table(lake: Lake, source: BinlogSource) -> str:
    """Return the name of the table that asks Debezium to read tables again.

    Each source of a lake has its own, because a connector obeys every row of its table.
    """
    return _at_most(MAX_TABLE, f"signals_{_own_name(lake, source)}")


def server_id(lake: Lake, source: BinlogSource) -> int:
    """Return the number with which the connector registers as a replica. No two replicas may share it."""
    if source.server_id is not None:
        return source.server_id
    digest = hashlib.sha256(f"{lake.name}.{source.name}".encode()).digest()
    return _FIRST_SERVER_ID + int.from_bytes(digest[:4], "big") % (2**31 - 1)


def _own_name(lake: Lake, source: BinlogSource) -> str:
    return f"{lake.name.replace('-', '_')}__{source.name}"


def _at_most(limit: int, name: str) -> str:
    """Return the name, or its beginning and a digest of all of it if it is too long."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
