"""How the S3 sinks name their files, and which offsets of a topic a file holds by its name and those beside
it."""

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
    """Files that are not what an S3 sink writes, or that do not hold all events once each."""


@dataclass(frozen=True)
class Layout:
    """`pattern` is a regular expression, of Python and Java, that matches the end of a path. Its groups are
    the topic, the partition, an offset, and perhaps the format. `names_last`: the offset is that of a file's
    last event, not of its first. `may_wrap_values`: a line can be `{"value":…}`."""

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
"""Sources: Confluent's TopicPartitionWriter#fileKeyToCommit, Lenses' Writer#commit and OffsetFileNamer, and
the default of Aiven's file.name.template."""

_SIDE_FILES = re.compile(r"(^|/)[_.][^/]*$|\.(keys|headers)\.(avro|json)(\.gz)?$")
"""What Hadoop takes for hidden, and the keys and headers that Confluent's sink can write beside values."""


@dataclass(frozen=True)
class FileStatus:
    """A file as a listing tells of it. `uri` is its path with what URLs escape escaped."""

    uri: str
    length: int
    modified: int


class FileName(NamedTuple):
    """What a file's name tells, by which no two files of a sink are the same. (The URI is not: a listing and
    a reader spell it differently.)"""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class EventFile:
    """A file of events of one partition. `offset` is the one in its name; `kind` None: its name does not
    tell."""

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
    """The offsets `first` (included) to `until` (excluded) of its partition are the file's or of no event.

    `before` is the file before it, where tombstones between the two are counted to this one.
    """

    file: EventFile
    first: int
    until: int
    before: EventFile | None = None


def find_layout(location: str, statuses: Iterable[FileStatus]) -> tuple[Layout, tuple[EventFile, ...]]:
    """The one layout that all files have, and what their names tell. Raises `UnreadableFiles`."""
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
        what="A file has not the name that an S3 sink would give it",
        where=location,
        found=next(iter(strangers.values()), next(iter(uris))),
        expected=examples,
        remedy="Name a folder that holds the files of one sink and nothing else, in Avro or JSON.",
    )


def spans(
    layout: Layout, files: Sequence[EventFile], counts: Mapping[FileName, FileCount]
) -> tuple[Span, ...]:
    """The spans of one partition's files, in order.

    `counts` has to tell of the file that no other borders on: the last one where names tell the
    first offset, the first one where they tell the last.
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
    """Raises `UnreadableFiles` where two files of a partition have the same offset in their names."""
    for one, other in pairwise(sorted(files, key=lambda file: file.offset)):
        if one.offset == other.offset:
            raise UnreadableFiles(
                what="Two files hold the same offsets",
                where=one.path,
                found=other.path,
                remedy="Remove the one that the sink left behind when it wrote the other.",
            )


def check_complete(layout: Layout, span: Span, counts: Mapping[FileName, FileCount]) -> None:
    """Raises `UnreadableFiles` where events are missing beside those of the file, or are there twice.

    Sinks leave out tombstones, of which Debezium sends one after each delete: as many offsets may be of no
    event. `counts` has to tell of the span's file and of the one before it.
    """
    count = counts[span.file.name]
    missing = span.until - span.first - count.events
    tombstones = {0, count.deletes}
    if layout.names_last and count.deletes:
        # That of a last delete is before the first offset of the next file.
        tombstones.add(count.deletes - 1)
    if span.before is not None and counts[span.before.name].deletes:
        tombstones |= {number + 1 for number in tombstones}
    if missing in tombstones:
        return
    where = f"{span.file.path}, topic {span.file.topic}, partition {span.file.partition}"
    if missing < 0:
        raise UnreadableFiles(
            what="A file holds more events than there are offsets between it and the next one",
            where=where,
            found=f"{count.events} events",
            expected=f"at most {span.until - span.first}, for offsets {span.first} to {span.until - 1}",
            remedy="Remove what the sink left behind when it wrote the same events again.",
        )
    raise UnreadableFiles(
        what="Events are missing between one file and the next",
        where=where,
        found=f"{count.events} events, {count.deletes} of them deletes",
        expected=f"{span.until - span.first} events, for offsets {span.first} to {span.until - 1}",
        remedy=(
            "Bring back the files that are missing. Where the topic is compacted or written in transactions, "
            "or the sink drops events on purpose, and all files are there, go on with --allow-gaps."
        ),
    )


def _event_file(status: FileStatus, match: re.Match[str]) -> EventFile:
    topic, partition, offset, extension = match.groups()
    kinds: dict[str | None, Kind | None] = {None: None, "avro": "avro"}
    return EventFile(status, topic, int(partition), int(offset), kinds.get(extension, "json"))
