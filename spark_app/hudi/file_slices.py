"""Hudi's data files by name: which ones no state of a table needs, and which log files can be merged.

Source of the format: org.apache.hudi.common.fs.FSUtils, table version 6.

- A base file is `<file id>_<write token>_<instant>.parquet`. A log file is
  `.<file id>_<instant>.log.<version>_<write token>`. Hudi counts versions from 1.
- The files of one file id and one instant are a file slice.
- To read a state, take each file id's last slice that is not younger than the state. Read its base file, then
  its log files in the order of their versions, but only the blocks of commits that are not younger either.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

_BASE_FILE = re.compile(r"(?P<file_id>[^_.]+)_[^_]+_(?P<instant>\d{17})\.parquet")
_LOG_FILE = re.compile(
    r"\.(?P<file_id>[^_.]+)_(?P<instant>\d{17})\.log\.(?P<version>\d+)(_(?P<write_token>.*))?"
)
_MERGED = ".log.0_0-0-0"


@dataclass(frozen=True, order=True)
class FileGroup:
    """All slices of one file id. `partition` is the partition's path in the table."""

    partition: str
    file_id: str


@dataclass(frozen=True)
class _DataFile:
    """A base file or a log file. `version` is None for a base file.

    Hudi orders log files by version (HoodieLogFile.LogFileComparator)."""

    path: str
    group: FileGroup
    instant: str
    version: tuple[int, str] | None


@dataclass(frozen=True)
class LogMerge:
    """The log files of one slice, in the order in which they are read, and the file that replaces them.

    `merged` holds all blocks of `log_files`. All of them are paths in the table. If `merged` is already
    written, `log_files` are those that still have to be removed."""

    merged: str
    log_files: tuple[str, ...]
    is_written: bool


def partition_of(path: str) -> str:
    """Return the path of a file's partition in the table; empty for an unpartitioned table."""
    return path.rpartition("/")[0]


def group_of(path: str) -> FileGroup | None:
    """Return the group of a data file; None for any other file."""
    file = _data_file(path)
    return None if file is None else file.group


def first_instant(paths: Iterable[str]) -> str | None:
    """Return the instant of the oldest data file among the paths; None if there is no data file."""
    return min((file.instant for file in filter(None, map(_data_file, paths))), default=None)


def outdated_files(
    paths: Iterable[str], oldest: str, replaced: frozenset[FileGroup] = frozenset()
) -> list[str]:
    """Return the data files among the paths that no state at the instant `oldest` or later needs.

    `replaced` are groups that were replaced by then. Instants are written as in Hudi: UTC,
    `yyyyMMddHHmmssSSS`."""
    outdated: list[str] = []
    for group, by_instant in _slices(paths).items():
        instants = list(by_instant)
        needed_from = len(instants) if group in replaced else max(0, bisect_right(instants, oldest) - 1)
        outdated += [file.path for instant in instants[:needed_from] for file in by_instant[instant]]
    return sorted(outdated)


def log_merges(paths: Iterable[str], superseded_before: str) -> Iterator[LogMerge]:
    """Return the merges of slices that another slice superseded before the instant.

    The oldest slice of a group comes first. Readers read a merged file before the files that it replaces. So
    it hides none of their blocks from a reader that stops at the first block that is too young."""
    for by_instant in _slices(paths).values():
        for instant, superseding in pairwise(by_instant):
            if superseding >= superseded_before:
                break
            versions = {file.version: file.path for file in by_instant[instant] if file.version is not None}
            log_files = [path for _, path in sorted(versions.items())]
            if len(log_files) > 1:
                merged = log_files[0].rpartition(".log.")[0] + _MERGED
                unmerged = tuple(path for path in log_files if path != merged)
                yield LogMerge(merged, unmerged, is_written=merged in log_files)


def _slices(paths: Iterable[str]) -> Mapping[FileGroup, Mapping[str, list[_DataFile]]]:
    """Return the data files among the paths, by group and by the instants of their slices, in order."""
    slices: dict[FileGroup, dict[str, list[_DataFile]]] = defaultdict(lambda: defaultdict(list))
    for file in filter(None, map(_data_file, paths)):
        slices[file.group][file.instant].append(file)
    return {group: dict(sorted(by_instant.items())) for group, by_instant in slices.items()}


def _data_file(path: str) -> _DataFile | None:
    partition, name = partition_of(path), path.rpartition("/")[2]
    if base_file := _BASE_FILE.fullmatch(name):
        return _DataFile(path, FileGroup(partition, base_file["file_id"]), base_file["instant"], None)
    if log_file := _LOG_FILE.fullmatch(name):
        version = int(log_file["version"]), log_file["write_token"] or ""
        return _DataFile(path, FileGroup(partition, log_file["file_id"]), log_file["instant"], version)
    return None
