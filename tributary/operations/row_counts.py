"""How many rows each table has. A table is counted again only after it has changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tributary.api.table import Table
from tributary.contract.table_name import TableName
from tributary.local.state import write_private_file

FILE = "row-counts.json"
_READERS = 8


class _Count(BaseModel):
    """The rows of a table whose files are at the address, after the last instant of its timeline."""

    model_config = ConfigDict(frozen=True)

    uri: str
    instant: str
    rows: int


class _File(BaseModel):
    tables: dict[str, _Count]


@dataclass(frozen=True)
class RowCounts:
    """The counts that a file in the state folder keeps. It may be removed at any time."""

    path: Path

    def read(self, tables: Iterable[Table]) -> Mapping[TableName, int]:
        """Return how many rows each table has. Soft-deleted rows do not count.

        Raises UnreadableTable and LakeUnreadable."""
        known = self._read()
        with ThreadPoolExecutor(_READERS) as pool:
            found = dict(pool.map(lambda table: (table.name, _count(table, known)), tables))
        counts = {str(name): count for name, count in found.items() if count.instant}
        if counts != known:
            # The counts are right without the file. Another command may write it at the same time.
            with suppress(OSError):
                draft = self.path.with_suffix(f".{os.getpid()}.draft")
                write_private_file(draft, _File(tables=counts).model_dump_json())
                draft.replace(self.path)
        return {name: count.rows for name, count in found.items()}

    def _read(self) -> Mapping[str, _Count]:
        try:
            return _File.model_validate_json(self.path.read_bytes()).tables
        except (FileNotFoundError, ValidationError):
            return {}


def _count(table: Table, known: Mapping[str, _Count]) -> _Count:
    # A commit that comes before the rows are counted has a later instant, so the next call counts them again.
    instant = table.last_instant() or ""
    before = known.get(str(table.name))
    if before is not None and (before.uri, before.instant) == (table.uri, instant):
        return before
    return _Count(uri=table.uri, instant=instant, rows=table.count())
