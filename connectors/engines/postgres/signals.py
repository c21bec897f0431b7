"""The rows that ask Debezium to read a table again (io.debezium.pipeline.signal)."""

from __future__ import annotations

import json
import re

import psycopg

from connectors.engines.engine import NotReadable
from connectors.engines.postgres.preparation import signals_of
from connectors.engines.postgres.row_filters import check_filters, row_filters
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import TakeSnapshot


def ask_for_snapshot(
    connection: psycopg.Connection, lake: Lake, source: PostgresSource, request: Request
) -> None:
    """Ask Debezium to read a table again. To ask again for the same request changes nothing.

    Raises `NotReadable`.
    """
    check_filters(connection, lake, source)
    data: dict[str, object] = {"type": "INCREMENTAL", "data-collections": [_collection(request)]}
    conditions = [request.condition, row_filters(lake, source).get(request.table)]
    if given := [f"({condition})" for condition in conditions if condition is not None]:
        data["additional-conditions"] = [{"data-collection": ".*", "filter": " AND ".join(given)}]
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
    """Return the table as Debezium takes it. Raises `NotReadable` if it takes no such name.

    Debezium looks for tables that it knows and that match this as a regular expression. If there are none, it
    reads this as the name of a table. A name in quotes matches none, because Debezium's own names have no
    quotes. But each name must be a regular expression.

    In its offsets, Debezium stores the name without quotes. If it cannot parse it there, the connector no
    longer starts (io.debezium.relational.TableIdParser).
    """
    parts = (request.table.schema, request.table.table)
    if all(re.fullmatch(r"[a-z0-9_]+", part) for part in parts):
        return ".".join(parts)
    quoted = ".".join(f'"{part}"' for part in parts)
    if any(re.search(r"""[\s"'`.]""", part) for part in parts) or not _is_regex(quoted):
        raise NotReadable(
            "Debezium cannot read this table alone, because of the characters in its name",
            where=str(request.table),
            remedy=TakeSnapshot(request.table.source),
        )
    return quoted


def _is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
