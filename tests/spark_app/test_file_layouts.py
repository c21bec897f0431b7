"""Which offsets a file holds follows from names and counts alone, and what is missing is seen by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spark_app.sources.file_layouts import (
    LAYOUTS,
    EventFile,
    FileCount,
    FileName,
    FileStatus,
    Layout,
    UnreadableFiles,
    check_complete,
    check_single,
    find_layout,
    spans,
)

TOPICS = st.from_regex(r"[a-z][a-z0-9._-]{0,12}", fullmatch=True)
NAMES = {
    "Confluent": "s3a://b/topics/{topic}/partition={partition}/{topic}+{partition}+{first:010}.avro",
    "Lenses": "s3a://b/lake/{topic}/{partition}/{last:012}_1700000000000_1700000000999.json",
    "Aiven": "s3a://b/2026/{topic}-{partition}-{first}.gz",
}


@dataclass(frozen=True)
class Sunk:
    """The first and last offset of what a sink has put into a file, and how many events are in it."""

    first: int
    last: int
    count: FileCount


@st.composite
def sunk_files(draw: st.DrawFn) -> list[Sunk]:
    """Files of a topic in which a tombstone follows each delete. The sink drops tombstones."""
    is_delete = draw(st.lists(st.booleans(), min_size=1, max_size=12))
    begins_file = draw(st.lists(st.booleans(), min_size=len(is_delete), max_size=len(is_delete)))
    offset = draw(st.integers(0, 10**12))
    files: list[list[tuple[int, bool]]] = [[]]
    for delete, begins in zip(is_delete, begins_file, strict=True):
        if begins and files[-1]:
            files.append([])
        files[-1].append((offset, delete))
        offset += 2 if delete else 1
    return [
        Sunk(file[0][0], file[-1][0], FileCount(len(file), sum(delete for _, delete in file)))
        for file in files
    ]


def placed(layout: Layout, sunk: list[Sunk], topic: str, partition: int) -> dict[str, Sunk]:
    name = NAMES[layout.name]
    return {name.format(topic=topic, partition=partition, first=f.first, last=f.last): f for f in sunk}


def counts(files: Sequence[EventFile], by_uri: Mapping[str, Sunk]) -> dict[FileName, FileCount]:
    return {file.name: by_uri[file.status.uri].count for file in files}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@given(sunk_files(), TOPICS, st.integers(0, 99))
def test_the_files_of_a_partition_follow_each_other_without_a_gap(
    layout: Layout, sunk: list[Sunk], topic: str, partition: int
) -> None:
    by_uri = placed(layout, sunk, topic, partition)
    found, files = find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in by_uri])
    assert (found, {(file.topic, file.partition) for file in files}) == (layout, {(topic, partition)})

    ordered = spans(layout, files, counts(files, by_uri))

    assert all(one.until == other.first for one, other in pairwise(ordered))
    assert ordered[-1].until > sunk[-1].last or not layout.names_last
    assert [by_uri[span.file.status.uri] for span in ordered] == sunk
    for span in ordered:
        check_complete(layout, span, counts(files, by_uri))


@given(sunk_files(), st.data())
def test_a_file_that_is_missing_is_missed_unless_it_was_the_first_or_the_last(
    sunk: list[Sunk], data: st.DataObject
) -> None:
    assume(len(sunk) > 2)
    layout = LAYOUTS[0]
    missing = data.draw(st.integers(1, len(sunk) - 2))
    before = sunk[missing - 1].count
    distance = sunk[missing + 1].first - sunk[missing - 1].first
    assume(distance not in (before.events, before.events + before.deletes))
    by_uri = placed(layout, sunk[:missing] + sunk[missing + 1 :], "t", 0)
    _, files = find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in by_uri])

    broken = spans(layout, files, counts(files, by_uri))[missing - 1]

    with pytest.raises(UnreadableFiles, match="Events are missing"):
        check_complete(layout, broken, counts(files, by_uri))


def test_a_file_with_more_events_than_its_place_has_offsets_is_refused() -> None:
    uris = ["s3a://b/t+0+0.json", "s3a://b/t+0+5.json"]
    _, files = find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in uris])
    first, _ = spans(LAYOUTS[0], files, {files[1].name: FileCount(1, 0)})
    with pytest.raises(UnreadableFiles, match="more events"):
        check_complete(LAYOUTS[0], first, {files[0].name: FileCount(6, 0)})


def test_two_files_of_one_offset_are_refused() -> None:
    uris = ["s3a://b/monday/t+0+5.json", "s3a://b/tuesday/t+0+05.json"]
    _, files = find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in uris])
    with pytest.raises(UnreadableFiles, match="same offsets"):
        check_single(files)


def test_a_file_of_another_kind_among_them_is_named_and_side_files_are_not_minded() -> None:
    good = ["s3a://b/t+0+0.json", "s3a://b/t+0+0.keys.json", "s3a://b/_SUCCESS"]
    assert len(find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in good])[1]) == 1
    with pytest.raises(UnreadableFiles, match=r"notes\.txt"):
        find_layout("s3a://b", [FileStatus(uri, 1, 1) for uri in [*good, "s3a://b/notes.txt"]])
