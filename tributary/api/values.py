"""An answer's values as Python has them, and as text where Python or a file's format has no such value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(found: pa.Table) -> Iterable[Sequence[Any]]:
    """Return the rows as Python values. Dates and moments outside Python's range become text."""
    return zip(*map(values_of, found.columns), strict=True)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values. All are texts if Python lacks one, such as an interval or the year 10000."""
    import pyarrow as pa

    if pa.types.is_interval(column.type):
        return texts_of(column)
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # Before the year 1, after 9999, or infinite.
        return texts_of(column)
    return values


def texts_of(column: pa.ChunkedArray) -> list[str | None]:
    """Return a column's values as DuckDB writes them. Moments are in UTC."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("found", pa.table({"value": column}))
        return [text for (text,) in engine.sql("SELECT CAST(value AS VARCHAR) FROM found").fetchall()]
