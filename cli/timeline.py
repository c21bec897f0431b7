"""What the commits of a silver table say: when, how many rows, and up to which position of its topic.

Source of the format: Hudi's timeline of table version 6, where `.hoodie/<instant>.<action>` is the JSON of
HoodieCommitMetadata, and its modification time is when the commit was complete.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_app.ledger import LEDGER_KEY, Ledger
from spark_app.progress import Freshness

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

_COMPLETED = re.compile(r"(?P<instant>\d{17})\.(commit|deltacommit|replacecommit)")
_READERS = 8


@dataclass(frozen=True)
class Commit:
    """A commit that applied events. `completed` is to the second: S3 knows no better.

    `rows` were upserted, `deletes` removed, as Hudi counted them.
    """

    instant: str
    completed: datetime
    rows: int
    deletes: int
    ledger: Ledger

    @property
    def freshness(self) -> Freshness | None:
        """Of the streamed changes of the commit, to the second; None where it has none."""
        return Freshness.of(self.ledger.source_times, round(self.completed.timestamp() * 1_000_000))


def read_commits(filesystem: S3FileSystem, path: str, limit: int) -> tuple[Commit, ...]:
    """The latest commits of the table at the path, newest first. Compactions and cleanings are left out.

    There can be fewer than the table ever had: Hudi archives the oldest ones.
    """
    found: list[Commit] = []
    instants = _completed_instants(filesystem, path)
    with ThreadPoolExecutor(_READERS) as pool:
        for first in range(0, len(instants), limit):
            batch = instants[first : first + limit]
            found += filter(None, pool.map(lambda info: _read_commit(filesystem, info), batch))
            if len(found) >= limit:
                break
    return tuple(found[:limit])


def read_last_commit(filesystem: S3FileSystem, path: str) -> Commit | None:
    """The commit that tells how far the table is; None where it has none."""
    return next(iter(read_commits(filesystem, path, limit=1)), None)


def _completed_instants(filesystem: S3FileSystem, path: str) -> list[FileInfo]:
    from pyarrow.fs import FileSelector

    files = filesystem.get_file_info(FileSelector(f"{path}/.hoodie", allow_not_found=True))
    completed = [info for info in files if _COMPLETED.fullmatch(info.base_name)]
    return sorted(completed, key=lambda info: info.base_name, reverse=True)


def _read_commit(filesystem: S3FileSystem, info: FileInfo) -> Commit | None:
    with filesystem.open_input_stream(info.path) as stream:
        metadata = json.loads(stream.read())
    ledger = (metadata.get("extraMetadata") or {}).get(LEDGER_KEY)
    if ledger is None:
        return None
    statistics = [stat for stats in metadata["partitionToWriteStats"].values() for stat in stats]
    return Commit(
        instant=info.base_name.partition(".")[0],
        completed=info.mtime,
        rows=_total(statistics, "numInserts") + _total(statistics, "numUpdateWrites"),
        deletes=_total(statistics, "numDeletes"),
        ledger=Ledger.from_json(ledger),
    )


def _total(statistics: list[dict[str, Any]], field: str) -> int:
    return sum(stat[field] for stat in statistics)
