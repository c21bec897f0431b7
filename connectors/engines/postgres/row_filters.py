"""The filters with which a publication sends only some rows of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import psycopg

from connectors.engines.engine import NotReadable
from connectors.engines.postgres.names import publication
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp
from tributary.contract.table_name import TableName

OLDEST_VERSION_WITH_FILTERS = 15


def row_filters(lake: Lake, source: PostgresSource) -> Mapping[TableName, str]:
    """Return the conditions of the tables of which only some rows leave the source."""
    return {
        table: policy.rows
        for table, policy in lake.tables
        if table.source == source.name and policy.rows is not None
    }


def check_filters(connection: psycopg.Connection, lake: Lake, source: PostgresSource) -> None:
    """Check that the publication has the filters of this lake file. Raises `NotReadable`.

    A process may still have the lake file from before a filter was added. It must not ask for rows that
    the filter excludes.
    """
    query = (
        "SELECT coalesce(obj_description(oid, 'pg_publication'), '') FROM pg_publication WHERE pubname = %s"
    )
    row = connection.execute(query, (publication(lake, source),)).fetchone()
    if row is not None and row[0] != filters_mark(lake, source):
        raise NotReadable(
            "the publication has other row filters than the lake file that this command has read",
            where=f"source {source.name}",
            remedy=[BringUp(), "Then restart the ingest, and ask for the snapshot again."],
        )


def filters_mark(lake: Lake, source: PostgresSource) -> str:
    """Return a text that differs if any filter does. PostgreSQL keeps it as the publication's comment.

    PostgreSQL keeps a condition in its own words, so the conditions cannot be compared.
    """
    filters = row_filters(lake, source)
    if not filters:
        return ""
    text = json.dumps(sorted((str(table), rows) for table, rows in filters.items()))
    return f"row filters {hashlib.sha256(text.encode()).hexdigest()[:16]}"
