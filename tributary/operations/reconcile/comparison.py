"""Compare two sets of rows in comparable form, row by row and cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import duckdb
import pyarrow as pa

Key = tuple[Any, ...]


class Kind(Enum):
    """The kinds of differences. Each value completes the sentence "The row is …"."""

    MISSING = "missing in the lake"
    EXTRA = "not in the database"
    REPEATED = "more than once in the lake"
    CHANGED = "different in the lake"


@dataclass(frozen=True)
class Cell:
    """A column of a row whose two values differ, both in comparable form."""

    column: str
    database: Any
    lake: Any


@dataclass(frozen=True)
class Difference:
    """A row that differs. If both sides have the row, `cells` lists the differing columns."""

    key: Key
    kind: Kind
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The number of rows in the database, and every row that differs, by key."""

    rows: int
    differences: tuple[Difference, ...]

    @property
    def identical(self) -> bool:
        return not self.differences


def compare(
    database: Iterable[pa.RecordBatch],
    lake: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    key: tuple[str, ...],
) -> Comparison:
    """Compare two sets of rows with the same schema. The key columns match the rows.

    A null equals a null, and a NaN equals a NaN. `database` holds every key once. If `lake` holds a key more
    than once, each extra row is a difference of its own.
    """
    with duckdb.connect() as engine:
        engine.execute("SET preserve_insertion_order = false")
        rows = _write(engine, "database", database, schema)
        _write(engine, "lake", lake, schema)
        found = engine.execute(_query(schema, key)).fetchall()
    return Comparison(rows, tuple(_difference(row, schema, key) for row in found))


def _write(
    engine: duckdb.DuckDBPyConnection, table: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> int:
    empty = schema.empty_table()
    engine.register("incoming", empty)
    engine.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
    rows = 0
    for batch in batches:
        engine.register("incoming", pa.Table.from_batches([batch], schema))
        engine.execute(f"INSERT INTO {table} SELECT * FROM incoming")
        rows += batch.num_rows
    engine.unregister("incoming")
    return rows


def _query(schema: pa.Schema, key: tuple[str, ...]) -> str:
    """Return a query for the differences, one row each.

    Its columns are copy, in_database, in_lake; then, for each column, whether it differs and both values.
    """
    keys = ", ".join(map(_quoted, key))
    numbered = "SELECT *, row_number() OVER (PARTITION BY {keys}) AS copy FROM {table}"
    same_key = " AND ".join(f"d.{_quoted(name)} IS NOT DISTINCT FROM l.{_quoted(name)}" for name in key)
    different = [f"d.{_quoted(name)} IS DISTINCT FROM l.{_quoted(name)}" for name in schema.names]
    cells = ", ".join(
        f"{test}, d.{_quoted(name)}, l.{_quoted(name)}"
        for test, name in zip(different, schema.names, strict=True)
    )
    return f"""
        WITH d AS ({numbered.format(keys=keys, table="database")}),
             l AS ({numbered.format(keys=keys, table="lake")})
        SELECT l.copy, d.copy IS NOT NULL, l.copy IS NOT NULL, {cells}
        FROM d FULL JOIN l ON {same_key} AND d.copy = l.copy
        WHERE d.copy IS NULL OR l.copy IS NULL OR {" OR ".join(different)}
        ORDER BY {", ".join(f"coalesce(d.{_quoted(name)}, l.{_quoted(name)})" for name in key)}, l.copy"""


def _difference(row: tuple[Any, ...], schema: pa.Schema, key: tuple[str, ...]) -> Difference:
    copy, in_database, in_lake, *rest = row
    cells = {name: rest[place * 3 : place * 3 + 3] for place, name in enumerate(schema.names)}
    side = 1 if in_database else 2
    found_key = tuple(cells[name][side] for name in key)
    if not in_lake:
        return Difference(found_key, Kind.MISSING)
    if not in_database:
        return Difference(found_key, Kind.REPEATED if copy > 1 else Kind.EXTRA)
    changed = tuple(Cell(name, old, new) for name, (differs, old, new) in cells.items() if differs)
    return Difference(found_key, Kind.CHANGED, changed)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
