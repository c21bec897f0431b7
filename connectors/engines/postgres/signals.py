"""The rows through which Debezium is told to read a table again (io.debezium.pipeline.signal)."""

from __future__ import annotations

import json
import re

import psycopg

from connectors.engines.postgres.preparation import signals_of
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request


def ask_for_snapshot(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, request: Request
) -> None:
    """Ask Debezium to read a table again. To ask again for the same request changes nothing."""
    data: dict[str, object] = {"type": "INCREMENTAL", "data-collections": [_collection(request)]}
    if request.condition is not None:
        data["additional-conditions"] = [{"data-collection": ".*", "filter": request.condition}]
    connection.execute(
        f"INSERT INTO {signals_of(lake, source)} (id, type, data) VALUES (%s, 'execute-snapshot', %s) "
        "ON CONFLICT (id) DO NOTHING".encode(),
        [request.id, json.dumps(data)],
    )


def forget_request(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, request: Request
) -> None:
    """Remove the row of a request that is over."""
    connection.execute(f"DELETE FROM {signals_of(lake, source)} WHERE id = %s".encode(), [request.id])


def _collection(request: Request) -> str:
    """Return the table as Debezium takes it.

    Debezium looks for tables that it knows and that match this as a regular expression. If there are none,
    it reads this as a table's name, which can have quotes. It knows no table that it has not met yet.
    """
    parts = (request.table.schema, request.table.table)
    if all(re.fullmatch(r"[a-z0-9_]+", part) for part in parts):
        return ".".join(parts)
    if any(re.search(r"[\\\[\](){}*+?|^$]", part) for part in parts):
        return re.escape(".".join(parts))
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
