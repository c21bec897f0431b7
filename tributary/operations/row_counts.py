"""How many rows each table has. A table is counted again only after it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tributary.api.open_lake import TableSummary
from tributary.contract.table_name import TableName
from tributary.operations.kept_file import KeptFile

FILE = "row-counts.json"
_READERS = 8


class _Count(BaseModel):
    """The rows of a table whose files are at the address, after the last instant of its timeline."""

    model_config = ConfigDict(frozen=True)

    uri: str
    instant: str
    rows: int


class _Counts(BaseModel):
    tables: dict[str, _Count]


def read_row_counts(path: Path, tables: Iterable[TableSummary]) -> Mapping[TableName, int]:
    """Return how many rows each table has. Soft-deleted rows do not count.

    path  a file that keeps the counts for the next call

    Raises UnreadableTable and LakeUnreadable."""
    file = KeptFile(path, _Counts)
    kept = file.read()
    known = {} if kept is None else kept.tables
    with ThreadPoolExecutor(_READERS) as pool:
        found = dict(pool.map(lambda one: (one.name, _count(one, known)), tables))
    counts = {str(name): count for name, count in found.items()}
    if counts != known:
        file.write(_Counts(tables=counts))
    return {name: count.rows for name, count in found.items()}


def _count(table: TableSummary, known: Mapping[str, _Count]) -> _Count:
    # A commit that comes before the rows are counted has a later instant, so the next call counts them again.
    before = known.get(str(table.name))
    if before is not None and (before.uri, before.instant) == (table.uri, table.last_instant):
        return before
    return _Count(uri=table.uri, instant=table.last_instant, rows=table.table.count())
