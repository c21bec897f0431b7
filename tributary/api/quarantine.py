"""The events in quarantine: their original bytes, and the reason why each could not be applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


@dataclass(frozen=True)
class QuarantinedEvent:
    """An event with its position, its raw bytes and the reason for its quarantine."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None
    moved_to: bytes | None
    moved_from: bytes | None
    reason: str
    message: str
    quarantined_at: datetime

    @property
    def position(self) -> str:
        """The position as `partition:offset`, which `quarantine show` accepts."""
        return f"{self.partition}:{self.offset}"


def read_quarantine(filesystem: S3FileSystem, path: str) -> tuple[QuarantinedEvent, ...]:
    """Return the events in the quarantine folder of a table, each once, sorted by position.

    A retried batch may set the same event aside again. The latest copy counts.
    """
    latest: dict[tuple[str, int, int], QuarantinedEvent] = {}
    for event in sorted(_read_events(filesystem, path), key=lambda event: event.quarantined_at):
        latest[event.topic, event.partition, event.offset] = event
    return tuple(latest[position] for position in sorted(latest))


def count_quarantine(filesystem: S3FileSystem, path: str) -> int:
    """Return the number of events in the quarantine folder of a table, without reading their bytes."""
    from pyarrow import parquet

    columns = ["topic", "partition", "offset"]
    positions: set[tuple[Any, ...]] = set()
    for file in _files(filesystem, path):
        found = parquet.read_table(file, filesystem=filesystem, columns=columns)
        positions.update(zip(*(found[column].to_pylist() for column in columns), strict=True))
    return len(positions)


def _read_events(filesystem: S3FileSystem, path: str) -> Iterator[QuarantinedEvent]:
    from pyarrow import parquet

    for file in _files(filesystem, path):
        rows: list[dict[str, Any]] = parquet.read_table(file, filesystem=filesystem).to_pylist()
        yield from (QuarantinedEvent(**row) for row in rows)


def _files(filesystem: S3FileSystem, path: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector, FileType

    for info in filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True)):
        # Spark's own files, such as _SUCCESS and leftovers of an unfinished attempt, start with these.
        hidden = any(part.startswith(("_", ".")) for part in info.path.removeprefix(path).split("/"))
        if info.type == FileType.File and not hidden and info.path.endswith(".parquet"):
            yield info.path
