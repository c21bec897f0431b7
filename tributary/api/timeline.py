"""The commits of a silver table: their times, row counts, and positions in the table's topic.

Source of the format: Hudi's timeline of table version 6. `.hoodie/<instant>.<action>` is the JSON of
HoodieCommitMetadata, and its modification time is when the commit was completed. A cleaning's file is an Avro
file of one HoodieCleanMetadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from spark_app.hudi.file_slices import first_instant
from spark_app.ledger.ledger import LEDGER_KEY, RETYPED_KEY, Ledger
from spark_app.reports import Freshness

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

_COMPLETED = re.compile(r"(?P<instant>\d{17})\.(commit|deltacommit|replacecommit)")
_CLEANING = re.compile(r"\d{17}\.clean")
_AVRO_SYNC_MARKER = 16
_READERS = 8


@dataclass(frozen=True)
class Commit:
    """A commit that applied events.

    instant    when it began, in Hudi's form: 17 digits, in UTC
    completed  when it was completed, to the second, which is S3's precision
    rows       how many rows were inserted or changed, as Hudi counted them
    deletes    how many rows were removed, as Hudi counted them
    written    the bytes of the files that it wrote
    schema     of all columns, as Avro's JSON; None if the commit does not tell
    """

    instant: str
    completed: datetime
    rows: int
    deletes: int
    ledger: Ledger = field(repr=False)
    written: int = 0
    schema: str | None = field(default=None, repr=False)

    @property
    def took(self) -> timedelta:
        """The time from the instant until it was completed, to the second."""
        began = datetime.strptime(f"{self.instant}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        # S3 cuts the fraction off, so a quick commit can seem to have ended before it began.
        return max(timedelta(0), timedelta(seconds=round((self.completed - began).total_seconds())))

    @property
    def events(self) -> int:
        """The number of events that it applied."""
        return self.ledger.events

    @property
    def quarantined(self) -> int:
        """The number of events that it set aside."""
        return self.ledger.quarantined

    @property
    def topic(self) -> str:
        """The Kafka topic of the events."""
        return self.ledger.topic

    @property
    def positions(self) -> Mapping[int, int]:
        """The table's positions in the topic: the next offset of each partition."""
        return self.ledger.positions

    @property
    def freshness(self) -> Freshness | None:
        """The age of the commit's streamed changes, to the second; None if it has none."""
        return Freshness.of(self.ledger.source_times, round(self.completed.timestamp() * 1_000_000))


@dataclass(frozen=True)
class Timeline:
    """The timeline of a table as it was listed. Its commits are read when somebody asks for them."""

    filesystem: S3FileSystem = field(repr=False)
    completed: Sequence[FileInfo] = field(repr=False)

    @property
    def last_instant(self) -> str | None:
        """The last instant that was completed, of whatever kind, or None if there is none."""
        return _instant(self.completed[0]) if self.completed else None

    def commits(self, limit: int) -> tuple[Commit, ...]:
        """Return the latest commits, newest first, without compactions and cleanings.

        There can be fewer than the table ever had, because the oldest ones leave the timeline.
        """
        found: list[Commit] = []
        with ThreadPoolExecutor(_READERS) as pool:
            for first in range(0, len(self.completed), limit):
                batch = self.completed[first : first + limit]
                found += filter(None, pool.map(self._commit, batch))
                if len(found) >= limit:
                    break
        return tuple(found[:limit])

    def last_commit(self) -> Commit | None:
        """Return the commit with the table's latest positions, or None if there is none."""
        return next(filter(None, map(self._commit, self.completed)), None)

    def _commit(self, info: FileInfo) -> Commit | None:
        return _read_commit(self.filesystem, info)


def read_timeline(filesystem: S3FileSystem, path: str) -> Timeline:
    """List the timeline of the table at the path. A path without a table has an empty one."""
    return Timeline(filesystem, _completed_instants(filesystem, path))


def read_commits(filesystem: S3FileSystem, path: str, limit: int) -> tuple[Commit, ...]:
    """Return the latest commits of the table at the path (`Timeline.commits`)."""
    return read_timeline(filesystem, path).commits(limit)


def read_last_commit(filesystem: S3FileSystem, path: str) -> Commit | None:
    """Return the last commit of the table at the path (`Timeline.last_commit`)."""
    return read_timeline(filesystem, path).last_commit()


def read_first_instant(filesystem: S3FileSystem, path: str) -> str | None:
    """Return the first commit of a table whose files were never cleaned, or None if there is no commit.

    It lists the table's files, because the commit may no longer be in the timeline.
    """
    from pyarrow.fs import FileSelector

    files = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    in_files = first_instant(info.path.removeprefix(f"{path}/") for info in files)
    instants = [_instant(info) for info in _completed_instants(filesystem, path)]
    return min(filter(None, [in_files, *instants]), default=None)


def read_retyped_columns(filesystem: S3FileSystem, path: str, instant: str) -> frozenset[str]:
    """Return the columns whose types changed in a commit after the instant.

    Such a commit replaces all files. It stays in the timeline as long as the history reaches back before it.
    """
    later = [
        info
        for info in _completed_instants(filesystem, path)
        if info.base_name.endswith(".replacecommit") and _instant(info) > instant
    ]
    metadata = (_read_if_there(filesystem, info) for info in later)
    return frozenset(chain.from_iterable(_retyped(content) for content in metadata if content is not None))


def _retyped(metadata: bytes) -> list[str]:
    """Return nothing if the commit does not say. Other rewrites of files, such as clustering, keep types."""
    found: list[str] = json.loads((json.loads(metadata).get("extraMetadata") or {}).get(RETYPED_KEY, "[]"))
    return found


def read_earliest_retained(filesystem: S3FileSystem, path: str) -> str | None:
    """Return the oldest commit whose state is still whole, or None if no cleaning has removed anything."""
    cleanings = _instants(filesystem, path, _CLEANING)
    with ThreadPoolExecutor(_READERS) as pool:
        return max(
            filter(None, pool.map(lambda info: _read_retained(filesystem, info), cleanings)), default=None
        )


def _read_retained(filesystem: S3FileSystem, info: FileInfo) -> str | None:
    metadata = _read_if_there(filesystem, info)
    return None if metadata is None else earliest_retained(metadata)


def earliest_retained(clean_metadata: bytes) -> str:
    """Return `earliestCommitToRetain` of a HoodieCleanMetadata. It is empty if nothing had to be removed.

    This reads Avro by hand, to avoid a library for a single field (Avro 1.11, Object Container Files).
    """
    avro = _AvroReader(clean_metadata, position=len(b"Obj\x01"))
    while items := avro.read_long():
        if items < 0:
            avro.read_long()
        for _ in range(2 * abs(items)):
            avro.read_text()
    avro.position += _AVRO_SYNC_MARKER
    for _ in ("objects in the block", "its size"):
        avro.read_long()
    avro.read_text()
    for _ in ("timeTakenInMillis", "totalFilesDeleted"):
        avro.read_long()
    return avro.read_text()


@dataclass
class _AvroReader:
    """Avro's binary encoding."""

    content: bytes
    position: int

    def read_long(self) -> int:
        number = shift = 0
        while True:
            byte = self.content[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)

    def read_text(self) -> str:
        length = self.read_long()
        self.position += length
        return self.content[self.position - length : self.position].decode()


def _completed_instants(filesystem: S3FileSystem, path: str) -> list[FileInfo]:
    return _instants(filesystem, path, _COMPLETED)


def _instants(filesystem: S3FileSystem, path: str, names: re.Pattern[str]) -> list[FileInfo]:
    """Return the timeline's files whose names match, newest first."""
    from pyarrow.fs import FileSelector

    files = filesystem.get_file_info(FileSelector(f"{path}/.hoodie", allow_not_found=True))
    found = [info for info in files if names.fullmatch(info.base_name)]
    return sorted(found, key=lambda info: info.base_name, reverse=True)


def _read_if_there(filesystem: S3FileSystem, info: FileInfo) -> bytes | None:
    """Return the content of the timeline's file, or None if it was removed since it was listed."""
    try:
        with filesystem.open_input_stream(info.path) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def _read_commit(filesystem: S3FileSystem, info: FileInfo) -> Commit | None:
    content = _read_if_there(filesystem, info)
    if content is None:
        return None
    metadata = json.loads(content)
    extra = metadata.get("extraMetadata") or {}
    ledger = extra.get(LEDGER_KEY)
    if ledger is None:
        return None
    statistics = [stat for stats in metadata["partitionToWriteStats"].values() for stat in stats]
    return Commit(
        instant=_instant(info),
        completed=info.mtime,
        rows=_total(statistics, "numInserts") + _total(statistics, "numUpdateWrites"),
        deletes=_total(statistics, "numDeletes"),
        ledger=Ledger.from_json(ledger),
        written=_total(statistics, "totalWriteBytes"),
        schema=extra.get("schema"),
    )


def _instant(info: FileInfo) -> str:
    return str(info.base_name.partition(".")[0])


def _total(statistics: list[dict[str, Any]], field: str) -> int:
    return sum(stat[field] for stat in statistics)
