"""The tables of the lake, and how to find the table that a person's name for it means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tributary.api.timeline import read_timeline
from tributary.contract.errors import TributaryError
from tributary.contract.naming import LakeNames
from tributary.contract.remedies import Ingest, ListTables
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_READERS = 8
_LEVELS = 3
"""The levels of a table's path: source, schema and table (`LakeNames.table_path`)."""


class UnknownTable(TributaryError):
    """A table that the lake does not have. `name` is how a person has called it, if that is known."""

    name: str | None = None


@dataclass(frozen=True, order=True)
class LakeTable:
    """A table of the lake, and the path of its files, which begins with the bucket's name."""

    name: TableName
    path: str


def read_silver_tables(filesystem: S3FileSystem, names: LakeNames, silver: str) -> tuple[LakeTable, ...]:
    """Return the tables below `silver` (a bucket, or bucket/prefix) with a completed commit, sorted by name.

    Hudi's readers refuse a table without one.
    """
    return with_commit(filesystem, read_table_folders(filesystem, names, silver))


def with_commit(filesystem: S3FileSystem, tables: Sequence[LakeTable]) -> tuple[LakeTable, ...]:
    """Return those of the tables that have a completed commit."""
    with ThreadPoolExecutor(_READERS) as pool:
        timelines = pool.map(lambda table: read_timeline(filesystem, table.path), tables)
        return tuple(table for table, timeline in zip(tables, timelines, strict=True) if timeline.completed)


def read_table_folders(filesystem: S3FileSystem, names: LakeNames, root: str) -> tuple[LakeTable, ...]:
    """Return the tables with a folder below `root`, sorted by name: of silver or of quarantine.

    The folder may hold no commit and no event."""
    from pyarrow.fs import FileSelector, FileType

    folders = [root]
    for _ in range(_LEVELS):
        folders = [
            info.path
            for folder in folders
            for info in filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
            if info.type == FileType.Directory
        ]
    tables = {folder: names.table_of_path(folder.removeprefix(f"{root}/")) for folder in folders}
    return tuple(sorted(LakeTable(name, folder) for folder, name in tables.items() if name is not None))


def find_silver_table(filesystem: S3FileSystem, names: LakeNames, silver: str, name: str) -> LakeTable:
    """Return the table below `silver` with a completed commit and this name (`find_table`).

    It looks at the tables of this name alone, unless there is none. Raises `UnknownTable`.
    """
    folders = read_table_folders(filesystem, names, silver)
    found = with_commit(filesystem, [table for table in folders if name in spellings(table.name)])
    return find_table(found or with_commit(filesystem, folders), name)


def find_table(tables: Sequence[LakeTable], name: str) -> LakeTable:
    """Return the table named `source.schema.table`, `schema.table` or `table`. Raises `UnknownTable`."""
    found = [table for table in tables if name in spellings(table.name)]
    if len(found) > 1:
        raise UnknownTable(
            f"Several tables have the name {name!r}",
            expected=" or ".join(str(table.name) for table in found),
        )
    if not found:
        raise unknown_table(name, [table.name for table in tables])
    return found[0]


def spellings(name: TableName) -> tuple[str, str, str]:
    """Return the three names that a person may use."""
    full = str(name)
    return full, full.removeprefix(f"{name.source}."), name.table


def unknown_table(name: str, tables: Sequence[TableName]) -> UnknownTable:
    """Return the error for a name that no table of the lake has. It suggests similar names."""
    error = _unknown_table(name, tables)
    error.name = name
    return error


def _unknown_table(name: str, tables: Sequence[TableName]) -> UnknownTable:
    if not tables:
        return UnknownTable(
            f"The lake has no table {name!r}",
            found="no table at all",
            remedy=Ingest(),
        )
    by_spelling = {spelling: str(table) for table in tables for spelling in spellings(table)}
    near = difflib.get_close_matches(name, by_spelling, n=3, cutoff=0.6)
    meant = dict.fromkeys(by_spelling[spelling] for spelling in near)
    return UnknownTable(
        f"The lake has no table {name!r}",
        remedy=f"Did you mean {' or '.join(meant)}?" if meant else ListTables(),
    )


def resolve_names(texts: Sequence[str], known: Sequence[TableName]) -> tuple[TableName, ...]:
    """Return the known tables that match names or patterns with `*` and `?`. Raises `UnknownTable`."""
    meant: set[TableName] = set()
    for text in texts:
        found = {name for name in known if any(fnmatchcase(spelling, text) for spelling in spellings(name))}
        if not found:
            raise unknown_table(text, known)
        meant |= found
    return tuple(sorted(meant))
