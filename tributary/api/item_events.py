"""The life of an item: every record of its key in bronze."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from spark_app.wire.items.attributes import Item, NotAnAttribute, plain_json, text_of
from spark_app.wire.items.record import UnreadableRecord, read_record
from spark_app.wire.items.wanted_keys import WantedKeys
from tributary.api.row_events import RowEvent, is_of, read_rows, with_previous

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_READ_BY_THE_APP = "tributary:"
"""The beginning of the `eventSource` of items that the app has read from the table or an export."""


def read_item_events(
    filesystem: S3FileSystem, bronze: str, records: str, topic: str, key: Mapping[str, str] | str
) -> tuple[RowEvent, ...]:
    """Return the key's records in bronze, in the order of the changes. A record can be there twice.

    `records` is the folder of their table in bronze. All files of the topic are read."""
    found: dict[tuple[int, int], tuple[tuple[int, int, str], RowEvent]] = {}
    for row in read_rows(filesystem, bronze, records, topic):
        for order, event in _events(row, key):
            found[event.partition, event.offset] = order, event
    ordered = sorted(found.values(), key=lambda each: each[0])
    return with_previous([event for _, event in ordered])


def count_item_events(
    filesystem: S3FileSystem, bronze: str, records: str, topics: Iterable[str], wanted: WantedKeys
) -> int:
    """Return how many records the files of bronze have of any of the keys, also damaged ones.

    All files of the topics are read."""
    return sum(
        wanted.in_record(row["value"]) is not None
        for topic in topics
        for row in read_rows(filesystem, bronze, records, topic)
    )


def _events(
    row: Mapping[str, Any], key: Mapping[str, str] | str
) -> Iterator[tuple[tuple[int, int, str], RowEvent]]:
    """Yield the record's event and its order, if it is a change of this key."""
    try:
        change = read_record(row["value"] or b"")
        names = {name: text_of(attribute) for name, attribute in change.keys.items()}
        if not is_of(names, key):
            return
        content = json.loads(row["value"])
        before, after = (_plain(item) for item in (content["dynamodb"].get("OldImage"), change.image))
    except (UnreadableRecord, NotAnAttribute):
        return
    sequence = row["sequence_number"]
    is_read = str(content.get("eventSource")).startswith(_READ_BY_THE_APP)
    yield (
        (change.time_us, len(sequence), sequence),
        RowEvent(
            topic=row["k_topic"],
            partition=row["k_partition"],
            offset=row["k_offset"],
            at=datetime.fromtimestamp(row["k_timestamp"] / 1000, UTC),
            op="r" if is_read else change.operation,
            before=before,
            after=after,
            source={"ts_ms": change.time_us // 1000},
            moved_to=None,
            moved_from=None,
            is_tombstone=False,
        ),
    )


def _plain(item: Item | None) -> Mapping[str, Any] | None:
    """Return an item without DynamoDB's types. Numbers that no float holds stay texts."""
    if item is None:
        return None
    return {name: json.loads(plain_json(attribute), parse_float=_number) for name, attribute in item.items()}


def _number(text: str) -> float | str:
    found = float(text)
    return found if repr(found) == text else text
