"""The rows of a silver table as Arrow, read by hudi-rs without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from tributary.api.lake_files import LakeFiles
from tributary.api.tables import LakeTable
from tributary.api.time_travel import ReadInSpark, check_readable
from tributary.contract.column_names import OWN_COLUMNS
from tributary.contract.errors import TributaryError
from tributary.contract.lake import TablePolicy
from tributary.contract.partitions import KeyPart, stored_partition
from tributary.contract.remedies import CheckStatus, ReadRunbook, RebuildTable

if TYPE_CHECKING:
    import pyarrow as pa
    from hudi import HudiReadOptions, HudiTable

Read = TypeVar("Read")

HUDI_COLUMN_PREFIX = "_hoodie_"

_KEY = "_key"
_DELETED = "_deleted"
_READINGS = 3
_HUDI_ERROR = "HudiCoreError"
"""The name of an exception that hudi-rs does not export."""
_GONE = re.compile(r"Object at location .+ not found")
"""The message for a missing file from object_store, with which hudi-rs reads."""
_NARROWER_ARRAYS = "partial-update column"
"""The beginning of hudi-rs 0.5.0's error for an array in a log file that is older than an added column."""


class UnreadableTable(TributaryError):
    """A table whose files cannot be read as they are."""


class _FileIsGone(UnreadableTable):
    """A file of the table was removed since it was listed."""


def read_table(files: LakeFiles, table: LakeTable, as_of: str | None = None) -> pa.Table:
    """Return the rows of the table's latest commit, or of the latest commit at the instant `as_of`.

    The columns are the source's, then the app's, without Hudi's. Raises OutOfHistory, ReadInSpark and
    `UnreadableTable`.
    """
    return _whole(_read_once, files, table, as_of)


def _whole(
    read: Callable[[LakeFiles, LakeTable, str | None], Read],
    files: LakeFiles,
    table: LakeTable,
    as_of: str | None,
) -> Read:
    """Return what `read` finds in the table, now or at the instant."""
    if as_of is not None:
        check_readable(files.filesystem, table, as_of)
    for _ in range(_READINGS - 1):
        # A rollback or a cleaning can remove files after the reader has listed them.
        with suppress(_FileIsGone):
            return read(files, table, as_of)
    return read(files, table, as_of)


def _read_once(files: LakeFiles, table: LakeTable, as_of: str | None) -> pa.Table:
    import pyarrow as pa

    with _told(table):
        hudi = _opened(files, table)
        batches = hudi.read(_options(as_of))
        # A table without rows has no file, and so no batch with its schema.
        found = pa.Table.from_batches(batches) if batches else hudi.get_schema().empty_table()
    return found.select(_shown(found.column_names))


def _opened(files: LakeFiles, table: LakeTable) -> HudiTable:
    from hudi import HudiTableBuilder

    return (
        HudiTableBuilder.from_base_uri(f"s3://{table.path}").with_storage_options(files.hudi_options).build()
    )


def _options(as_of: str | None) -> HudiReadOptions:
    from hudi import HudiReadOptions

    return HudiReadOptions() if as_of is None else HudiReadOptions().with_as_of_timestamp(as_of)


def _shown(columns: Sequence[str]) -> list[str]:
    """Return the columns without Hudi's, and the columns that the lake adds last."""
    return sorted((name for name in columns if not name.startswith(HUDI_COLUMN_PREFIX)), key=_is_of_lake)


def _is_of_lake(column: str) -> bool:
    return column in OWN_COLUMNS or isinstance(stored_partition(column), KeyPart)


@contextmanager
def _told(table: LakeTable) -> Iterator[None]:
    """Turn hudi-rs's errors in the context into the errors of this module."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != _HUDI_ERROR:
            raise
        if _NARROWER_ARRAYS in str(error):
            raise ReadInSpark(
                "A column was added later to this table with arrays, so only Spark SQL can read this state",
                where=str(table.name),
                found=str(error),
                remedy=ReadRunbook("older state"),
            ) from error
        is_gone = _GONE.search(str(error)) is not None
        raise (_FileIsGone if is_gone else UnreadableTable)(
            "The table cannot be read",
            where=str(table.name),
            found=str(error),
            remedy=[CheckStatus(), "If everything runs, rebuild the table.", RebuildTable(str(table.name))],
        ) from error


def without_key_parts(found: pa.Table, policy: TablePolicy) -> pa.Table:
    """Return the table without the parts of its key that partition it."""
    parts = {part.name for part in policy.key_parts}
    return found.drop_columns([name for name in found.column_names if name in parts])


def stream_rows(files: LakeFiles, table: LakeTable, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the table's latest commit, batch by batch, with at least these columns.

    Raises `UnreadableTable`, also if a file is removed while it is read. The whole can then be read again.
    """
    with _told(table):
        yield from _opened(files, table).read_stream(_options(None).with_projection(list(columns)))


def read_schema(files: LakeFiles, table: LakeTable) -> pa.Schema:
    """Return the table's columns, as `read_table` returns them. Raises `UnreadableTable`."""
    import pyarrow as pa

    with _told(table):
        schema = _opened(files, table).get_schema()
    return pa.schema([schema.field(name) for name in _shown(schema.names)])


def count_rows(files: LakeFiles, table: LakeTable, as_of: str | None = None) -> int:
    """Return how many rows the table has, or had. Soft-deleted rows do not count.

    Raises what `read_table` raises."""
    return _whole(_count_once, files, table, as_of)


def _count_once(files: LakeFiles, table: LakeTable, as_of: str | None) -> int:
    import pyarrow.compute as pc

    with _told(table):
        hudi = _opened(files, table)
        columns = [name for name in (_KEY, _DELETED) if name in hudi.get_schema().names]
        batches = list(hudi.read_stream(_options(as_of).with_projection(columns)))
    rows = sum(batch.num_rows for batch in batches)
    deleted = [pc.sum(batch[_DELETED]).as_py() for batch in batches if _DELETED in batch.schema.names]
    return int(rows - sum(filter(None, deleted)))
