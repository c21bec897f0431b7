"""The error of a database, a role or a table that is not ready."""

from __future__ import annotations

from connectors.engines.engine import DatabaseNotReady


class PostgresNotReady(DatabaseNotReady):
    """A server, a role or a table that Debezium cannot read without losing changes."""
