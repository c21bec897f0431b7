"""Patterns and entries of a lake file for which a database has no table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from connectors.engines.engine import DatabaseNotReady
from tributary.contract.lake import Lake
from tributary.contract.patterns import TablePattern
from tributary.contract.source import Source

NotReadyT = TypeVar("NotReadyT", bound=DatabaseNotReady)

SchemaAndTable = tuple[str, str]


def patterns_without_table(
    source: Source, tables: Sequence[SchemaAndTable], place: str, error: type[NotReadyT]
) -> Iterator[NotReadyT]:
    """Yield an error for each of the source's patterns that matches none of these tables.

    place  where the tables are, such as "in database shop"
    """
    for pattern in source.patterns.include:
        if not any(pattern.matches(*table) for table in tables):
            yield error(
                "a pattern that matches no table",
                where=f"[source.{source.name}].tables",
                found=f'"{pattern}"',
                expected=f"a table that it matches {place}{_like_it(pattern, tables)}",
            )


def entries_without_table(
    lake: Lake, source: Source, taken: Sequence[SchemaAndTable], error: type[NotReadyT]
) -> Iterator[NotReadyT]:
    """Yield an error for each of the lake file's tables that the source does not take."""
    for name, _ in lake.tables:
        is_own = name.source == source.name and not source.routes_to(name.schema)
        if is_own and (name.schema, name.table) not in taken:
            yield error(
                "an entry for a table that does not exist",
                where=f'[table."{name}"]',
                found="no such table",
                expected=f"a table that source {source.name} takes",
            )


def _like_it(pattern: TablePattern, tables: Sequence[SchemaAndTable]) -> str:
    names = [f"{schema}.{table}" for schema, table in tables]
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    case = [name for name in names if str(pattern).lower() == name.lower()]
    if case:
        return f"; did you mean {case[0]}? Case matters"
    return f", which has {shown}" if names else ", which has no tables"
