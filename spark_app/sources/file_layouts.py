"""How S3 sinks name their files, and which offsets a file contains by its name and its neighbors' names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple
from urllib.parse import unquote

from tributary.contract.errors import TributaryError

Kind = Literal["avro", "json"]


class UnreadableFiles(TributaryError):
    """The files are not an S3 sink's, or they do not contain every event exactly once."""


@dataclass(frozen=True)
class Layout:
    """How a sink names its files.

    pattern          a regular expression for Python and Java that matches the end of a path. Its groups are
                     the topic, the partition, an offset and, if named, the format.
    names_last       the offset is that of a file's last event, not of its first
    may_wrap_values  a line can be `{"value":…}`
    """

    name: str
    pattern: str
    example: str
    names_last: bool = False
    may_wrap_values: bool = False


LAYOUTS = (
    Layout(
        "Confluent",
        r"(?:^|/)([^/+]+)\+(\d+)\+(\d+)\.(avro|json)(?:\.gz)?$",
        "topics/<topic>/partition=<n>/<topic>+<n>+<start offset>.avro",
    ),
    Layout(
        "Lenses",
        r"(?:^|/)([^/]+)/(\d+)/(\d+)(?:_\d+_\d+)?\.(avro|json)(?:\.gz)?$",
        "<topic>/<partition>/<last offset>.avro",
        names_last=True,
    ),
    Layout(
        "Aiven",
        r"(?:^|/)([^/]+)-(\d+)-(\d+)(?:\.(avro|json|jsonl))?(?:\.gz)?$",
        "<topic>-<partition>-<start offset>.gz",
        may_wrap_values=True,
    ),
)
"""From Confluent's TopicPartitionWriter#fileKeyToCommit, Lenses' Writer#commit and OffsetFileNamer, and the
default of Aiven's file.name.template."""

_SIDE_FILES = re.compile(r"(^|/)[_.][^/]*$|\.(keys|headers)\.(avro|json)(\.gz)?$")
"""Files that Hadoop treats as hidden, and the files of keys and headers that Confluent's sink can write."""


@dataclass(frozen=True)
class FileStatus:
    """A file in a listing. `uri` is its path, escaped as in URLs."""

    uri: str
    length: int
    modified: int


class FileName(NamedTuple):
    """The parts of a file's name, which identify it among a sink's files.

    The URI cannot identify it, because a listing and a reader spell it differently.
    """

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class EventFile:
    """A file of one partition's events. `offset` and `kind` come from its name; without a kind it is None."""

    status: FileStatus
    topic: str
    partition: int
    offset: int
    kind: Kind | None

    @property
    def path(self) -> str:
        return unquote(self.status.uri)

    @property
    def name(self) -> FileName:
        return FileName(self.topic, self.partition, self.offset)


@dataclass(frozen=True)
class FileCount:
    """The events of a file, and how many of them are deletes."""

    events: int
    deletes: int


@dataclass(frozen=True)
class Span:
    """The offsets of its partition that a file covers, from `first` (included) to `until` (excluded).

    Each of these offsets is an event in the file, or no event. `before` is the previous file if the
    tombstones between the two files count for this one.
    """

    file: EventFile
    first: int
    until: int
    before: EventFile | None = None


def find_layout(location: str, statuses: Iterable[FileStatus]) -> tuple[Layout, tuple[EventFile, ...]]:
    """Return the layout that all files share, and the files by their names. Raise `UnreadableFiles`."""
    uris = {status.uri: status for status in statuses if not _SIDE_FILES.search(status.uri)}
    if not uris:
        return LAYOUTS[0], ()
    strangers: dict[str, str] = {}
    for layout in LAYOUTS:
        found = {uri: re.search(layout.pattern, uri) for uri in uris}
        files = [_event_file(uris[uri], match) for uri, match in found.items() if match is not None]
        if len(files) == len(uris):
            return layout, tuple(files)
        if files:
            strangers.setdefault(layout.name, next(uri for uri, match in found.items() if match is None))
    examples = " or ".join(f"{layout.example} ({layout.name})" for layout in LAYOUTS)
    raise UnreadableFiles(
        what="A file's name does not match any S3 sink's naming",
        where=location,
        found=next(iter(strangers.values()), next(iter(uris))),
        expected=examples,
        remedy="Name a folder that contains only the files of one sink, in Avro or JSON.",
    )


def spans(
    layout: Layout, files: Sequence[EventFile], counts: Mapping[FileName, FileCount]
) -> tuple[Span, ...]:
    """Return the spans of one partition's files, in order.

    `counts` must have an entry for the file at the open end: the last file if names give the first offset,
    the first file if names give the last offset.
    """
    ordered = sorted(files, key=lambda file: file.offset)
    if layout.names_last:
        ends = [file.offset + 1 for file in ordered]
        beginning = ends[0] - counts[ordered[0].name].events
        return tuple(map(Span, ordered, [beginning, *ends[:-1]], ends, [None, *ordered[:-1]]))
    starts = [file.offset for file in ordered]
    end = starts[-1] + counts[ordered[-1].name].events
    return tuple(map(Span, ordered, starts, [*starts[1:], end]))


def check_single(files: Iterable[EventFile]) -> None:
    """Raise `UnreadableFiles` if two files of a partition have the same offset in their names."""
    for one, other in pairwise(sorted(files, key=lambda file: file.offset)):
        if one.offset == other.offset:
            raise UnreadableFiles(
                what="Two files contain the same offsets",
                where=one.path,
                found=other.path,
                remedy="Remove the one that the sink left behind when it wrote the other.",
            )


def check_complete(layout: Layout, span: Span, counts: Mapping[FileName, FileCount]) -> None:
    """Raise `UnreadableFiles` if the span's offsets have missing or repeated events.

    Debezium sends a tombstone after each delete, and sinks leave tombstones out. So that many offsets may
    have no event. `counts` must have entries for the span's file and the file before the span.
    """
    count = counts[span.file.name]
    missing = span.until - span.first - count.events
    tombstones = {0, count.deletes}
    if layout.names_last and count.deletes:
        # If the last event is a delete, its tombstone's offset belongs to the next file's span.
        tombstones.add(count.deletes - 1)
    if span.before is not None and counts[span.before.name].deletes:
        tombstones |= {number + 1 for number in tombstones}
    if missing in tombstones:
        return
    where = f"{span.file.path}, topic {span.file.topic}, partition {span.file.partition}"
    if missing < 0:
        raise UnreadableFiles(
            what="A file contains more events than there are offsets before the next file",
            where=where,
            found=f"{count.events} events",
            expected=f"at most {span.until - span.first}, for offsets {span.first} to {span.until - 1}",
            remedy="Remove the files that the sink left behind when it wrote the same events again.",
        )
    raise UnreadableFiles(
        what="Events are missing between one file and the next",
        where=where,
        found=f"{count.events} events, {count.deletes} of them deletes",
        expected=f"{span.until - span.first} events, for offsets {span.first} to {span.until - 1}",
        remedy=(
            "Restore the missing files. If no file is missing, because the topic is compacted or written in "
            "transactions, or the sink drops events on purpose, continue with --allow-gaps."
        ),
    )


def _event_file(status: FileStatus, match: re.Match[str]) -> EventFile:
    topic, partition, offset, extension = match.groups()
    kinds: dict[str | None, Kind | None] = {None: None, "avro": "avro"}
    return EventFile(status, topic, int(partition), int(offset), kinds.get(extension, "json"))
