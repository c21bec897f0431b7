"""Write TICKIT into a database through the RDS Data API: in one transaction, many rows per request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from stacks.functions.bootstrap.data_api import DataApi
from tributary.tickit.generator import Row, generate
from tributary.tickit.schema import INDEXES, SCHEMA, TABLES, TickitTable

MAX_REQUEST_CHARACTERS = 1_000_000
"""The most characters of rows in a request, which may have 4 MiB and take 45 seconds."""


def write_tickit(database: DataApi, scale: float, tell: Callable[[str], None] = print) -> bool:
    """Create and fill the tables, all or nothing. Return False if they exist already."""
    if _is_loaded(database):
        return False
    rows = generate(scale)
    with database.transaction() as transaction:
        transaction.run(f"SET LOCAL search_path TO {SCHEMA}")
        for table in TABLES:
            transaction.run(table.ddl)
            for batch in _batches(table, rows[table.name]):
                transaction.run(_insert(table), rows=batch)
            tell(f"{table.name}: {len(rows[table.name])} rows")
        for index in INDEXES:
            transaction.run(index)
    return True


def _is_loaded(database: DataApi) -> bool:
    names = ", ".join(f"'{table.name}'" for table in TABLES)
    query = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{SCHEMA}' AND tablename IN ({names})"
    return database.run(query) == [str(len(TABLES))]


def _insert(table: TickitTable) -> str:
    # With its schema: `date` alone is PostgreSQL's own type.
    name, columns = f"{SCHEMA}.{table.name}", ", ".join(table.columns)
    return (
        f"INSERT INTO {name} ({columns}) SELECT {columns} "
        f"FROM json_populate_recordset(CAST(NULL AS {name}), CAST(:rows AS json))"
    )


def _batches(table: TickitTable, rows: list[Row]) -> Iterator[str]:
    """Yield the rows as JSON arrays of objects."""
    batch, characters = [], 0
    for row in rows:
        batch.append(json.dumps(dict(zip(table.columns, map(_plain, table.columns, row), strict=True))))
        characters += len(batch[-1])
        if characters > MAX_REQUEST_CHARACTERS:
            yield f"[{','.join(batch)}]"
            batch, characters = [], 0
    if batch:
        yield f"[{','.join(batch)}]"


def _plain(column: str, value: Any) -> Any:
    match value:
        case Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case str() if column == "preferences":
            return json.loads(value)
        case _:
            return value
