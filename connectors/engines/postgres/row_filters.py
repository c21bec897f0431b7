"""The filters with which a publication sends only some rows of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

OLDEST_VERSION_WITH_FILTERS = 15


def row_filters(lake: Lake, source: PostgresSource) -> Mapping[TableName, str]:
    """Return the conditions of the tables of which only some rows leave the source."""
    return {
        table: policy.rows
        for table, policy in lake.tables
        if table.source == source.name and policy.rows is not None
    }


def filters_mark(lake: Lake, source: PostgresSource) -> str:
    """Return a text that differs if any filter does. PostgreSQL keeps it as the publication's comment.

    PostgreSQL keeps a condition in its own words, so the conditions cannot be compared.
    """
    filters = row_filters(lake, source)
    if not filters:
        return ""
    text = json.dumps(sorted((str(table), rows) for table, rows in filters.items()))
    return f"row filters {hashlib.sha256(text.encode()).hexdigest()[:16]}"
