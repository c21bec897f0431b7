"""Hudi's data files by their names: which of them no state of a table within its history is read from.

Source of the format: org.apache.hudi.common.fs.FSUtils, table version 6. A base file is
`<file id>_<write token>_<instant>.parquet`, a log file `.<file id>_<instant>.log.<version>_<write token>`.
The files of one file id and one instant are a file slice. A state is read from each file id's last slice that
is not younger than it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_BASE_FILE = re.compile(r"(?P<file_id>[^_.]+)_[^_]+_(?P<instant>\d{17})\.parquet")
_LOG_FILE = re.compile(r"\.(?P<file_id>[^_.]+)_(?P<instant>\d{17})\.log\.\d+(_.*)?")


@dataclass(frozen=True, order=True)
class FileGroup:
    """All slices of one file id, in a partition by its path in the table."""

    partition: str
    file_id: str


def partition_of(path: str) -> str:
    """The partition of a file, by their paths in the table; empty in a table without any."""
    return path.rpartition("/")[0]


def outdated_files(
    paths: Iterable[str], oldest: str, replaced: frozenset[FileGroup] = frozenset()
) -> list[str]:
    """Those of the paths, in the table, that are data files and that no state at the instant `oldest`, or
    later, is read from. `replaced` are groups that hold nothing any more since then.

    Instants are as Hudi writes them: UTC, `yyyyMMddHHmmssSSS`."""
    slices: dict[FileGroup, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        partition, name = partition_of(path), path.rpartition("/")[2]
        if match := _BASE_FILE.fullmatch(name) or _LOG_FILE.fullmatch(name):
            slices[FileGroup(partition, match["file_id"])][match["instant"]].append(path)
    outdated: list[str] = []
    for group, by_instant in slices.items():
        instants = sorted(by_instant)
        needed_from = len(instants) if group in replaced else max(0, bisect_right(instants, oldest) - 1)
        outdated += [path for instant in instants[:needed_from] for path in by_instant[instant]]
    return sorted(outdated)
