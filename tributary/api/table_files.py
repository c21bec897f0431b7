"""The files of a silver table, and its compactions.

Source of the names: Hudi's table version 6. A log file's name begins with a dot, and a base file ends in
`.parquet`. In a merge-on-read table, only a compaction completes a `<instant>.commit`, and a compaction that
has not ended has a `<instant>.compaction.requested`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spark_app.hudi.file_slices import group_of
from tributary.contract.lake import Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

_COMPACTED = re.compile(r"(\d{17})\.commit")
_REQUESTED = re.compile(r"(\d{17})\.compaction\.requested")


@dataclass(frozen=True)
class TableFiles:
    """The files of a table, with those that only older states need.

    base_files, log_files  how many there are
    base_bytes, log_bytes  their sizes together
    compacted              when the last compaction ended that is in the timeline, UTC; None: there is none
    pending                how many compactions have been planned and have not ended
    """

    base_files: int
    log_files: int
    base_bytes: int
    log_bytes: int
    compacted: datetime | None
    pending: int


def read_table_files(filesystem: S3FileSystem, path: str, storage: Storage) -> TableFiles:
    """List the files of the table at the path."""
    from pyarrow.fs import FileSelector

    found = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return table_files(found, path, storage)


def table_files(found: Iterable[FileInfo], path: str, storage: Storage) -> TableFiles:
    """Return what a listing of the table at the path says."""
    base: list[int] = []
    log: list[int] = []
    compacted: dict[str, datetime] = {}
    requested: set[str] = set()
    for info in found:
        inside = info.path.removeprefix(f"{path}/")
        if inside.startswith(".hoodie/"):
            if storage == "merge_on_read" and (match := _COMPACTED.fullmatch(info.base_name)):
                compacted[match[1]] = info.mtime
            elif match := _REQUESTED.fullmatch(info.base_name):
                requested.add(match[1])
        elif group_of(inside) is not None:
            (base if info.base_name.endswith(".parquet") else log).append(info.size)
    return TableFiles(
        len(base),
        len(log),
        sum(base),
        sum(log),
        max(compacted.values(), default=None),
        len(requested - compacted.keys()),
    )
