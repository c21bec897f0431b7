"""The life of a row: every event of its key in bronze."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tributary.api.event_payloads import EventPayloads
from tributary.contract.errors import TributaryError
from tributary.contract.unchanged_value import is_unchanged

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_ROWS_AT_ONCE = 1024


_OPERATIONS = {"c": "created", "u": "updated", "d": "deleted", "r": "read by a snapshot", "t": "truncated"}


class NotAKey(TributaryError):
    """A text that names no key."""


@dataclass(frozen=True)
class RowEvent:
    """An event of one key.

    at        when Kafka got it, UTC
    op        Debezium's operation: c, u, d, r or t; None for a tombstone, and for bytes that are no event
    before    the row before the change, as far as the event has it
    after     the row after the change; None if the event deletes it
    source    where the change was in the source's log
    moved_to  the new key, as JSON, if the change gave the row another key
    previous  the row after the event before this one, if this one is an update that has no row before it
    """

    topic: str
    partition: int
    offset: int
    at: datetime
    op: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    source: Mapping[str, Any]
    moved_to: str | None
    moved_from: str | None
    is_tombstone: bool
    previous: Mapping[str, Any] | None = None

    @property
    def kind(self) -> str:
        """What happened, in a word or two."""
        if self.op is None:
            return "tombstone" if self.is_tombstone else "unreadable"
        return _OPERATIONS.get(self.op, self.op)

    @property
    def committed(self) -> datetime:
        """When the source committed the change, UTC; when Kafka got it, if the event does not tell."""
        milliseconds = self.source.get("ts_ms")
        if not isinstance(milliseconds, int) or self.op == "r":
            return self.at
        return datetime.fromtimestamp(milliseconds / 1000, UTC)

    @property
    def changed(self) -> Mapping[str, tuple[Any, Any]]:
        """The columns whose values differ before and after, with both values. Empty if a side is missing."""
        old, new = self.before or self.previous, self.after
        if old is None or new is None:
            return {}
        # PostgreSQL may leave out a large value: no change is known of it.
        return {
            name: (old.get(name), value)
            for name, value in new.items()
            if old.get(name) != value and not is_unchanged(value)
        }


@dataclass(frozen=True)
class RowState:
    """A row as a change has left it. `values` is None if it was deleted.

    unknown  columns that no event up to the change has the value of: it was not changed since before bronze
    """

    since: RowEvent
    values: Mapping[str, Any] | None
    unknown: frozenset[str] = frozenset()


def row_at(events: Sequence[RowEvent], moment: datetime) -> RowState | None:
    """Return the row as it was in the source at a time; None if bronze has no change of it from before.

    events  all events of the row, oldest first

    An update of PostgreSQL may leave out large values that it does not change. Then the event before it
    has them. A truncate of the whole table is no event of a row.
    """
    last: RowEvent | None = None
    values: dict[str, Any] = {}
    for event in events:
        if event.op is None or event.committed > moment:
            continue
        values, last = _row_after(event, values), event
    if last is None:
        return None
    if last.after is None:
        return RowState(last, None)
    return RowState(last, values, frozenset(name for name, value in values.items() if is_unchanged(value)))


def parse_key(text: str) -> Mapping[str, str] | str:
    """Return a key from what a person wrote: `7`, `id=7`, `order=7,line=2`, or a JSON object.

    A text without a column's name stands for the value of a key of one column. Raises NotAKey.
    """
    text = text.strip()
    if not text:
        raise NotAKey("no key", expected="a value such as 7, or columns such as order=7,line=2")
    if text.startswith("{"):
        try:
            return {str(name): _as_text(value) for name, value in json.loads(text).items()}
        except ValueError as error:
            raise NotAKey("a key that is no JSON object", found=text, expected='such as {"id": 7}') from error
    if "=" not in text:
        return text
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and sign for name, sign, _ in parts):
        raise NotAKey("a key that cannot be read", found=text, expected="such as order=7,line=2")
    return {name.strip(): value.strip() for name, _, value in parts}


def read_row_events(
    filesystem: S3FileSystem,
    bronze: str,
    namespace: str,
    topic: str,
    key: Mapping[str, str] | str,
    payloads: EventPayloads,
) -> tuple[RowEvent, ...]:
    """Return the key's events in bronze, by partition and offset. An event is in bronze some seconds late.

    It reads all files of the topic, because bronze is not sorted by key. The files can hold an event twice.
    Raises SchemasMissing or RegistryRefused if the events are Avro and their schemas cannot be had. Raises
    NotAKey if no event has a key of these columns.
    """
    found: dict[tuple[int, int], RowEvent] = {}
    others: set[tuple[str, ...]] = set()
    for row in read_rows(filesystem, bronze, f"{namespace}/events", topic):
        payload = payloads.read(row["key"])
        if isinstance(payload, dict):
            others.add(tuple(payload))
        if is_of(payload, key):
            found[row["k_partition"], row["k_offset"]] = _event(row, payloads.read(row["value"]))
    if others and not any(_has_columns(key, columns) for columns in others):
        expected = ",".join(f"{name}=…" for name in min(others))
        raise NotAKey("the key of this table has other columns", found=_key_text(key), expected=expected)
    return with_previous([found[place] for place in sorted(found)])


def with_previous(events: Sequence[RowEvent]) -> tuple[RowEvent, ...]:
    """Return the events of a row, each update that has no row before it with the one that it changed.

    PostgreSQL sends a row before its change only with REPLICA IDENTITY FULL.
    """
    shown: list[RowEvent] = []
    row: dict[str, Any] = {}
    for event in events:
        is_update = event.op == "u" and event.before is None
        shown.append(replace(event, previous=row or None) if is_update else event)
        if event.op is not None:
            row = _row_after(event, row)
    return tuple(shown)


def _row_after(event: RowEvent, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row that a change leaves. Values that the event leaves out are those from before it."""
    return {
        name: before.get(name, value) if is_unchanged(value) else value
        for name, value in (event.after or {}).items()
    }


def count_events(
    filesystem: S3FileSystem,
    bronze: str,
    namespace: str,
    topic: str,
    keys: Collection[Mapping[str, str]],
    payloads: EventPayloads,
) -> int:
    """Return how many events bronze's files have of any of the keys. It reads all files of the topic once."""
    wanted = {frozenset(key.items()) for key in keys}
    return sum(
        isinstance(payload := payloads.read(row["key"]), dict) and key_of(payload) in wanted
        for row in read_rows(filesystem, bronze, f"{namespace}/events", topic)
    )


def key_of(payload: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return an event's key as the names and texts of its columns."""
    return frozenset((name, _as_text(value)) for name, value in payload.items())


def read_rows(filesystem: S3FileSystem, bronze: str, table: str, topic: str) -> Iterator[dict[str, Any]]:
    """Return the rows of a topic in the files of a table in bronze, such as `lake_bronze/events`."""
    from pyarrow import dataset
    from pyarrow.fs import FileSelector

    namespace, _, name = table.partition("/")
    for database in (namespace, f"{namespace}.db"):  # Iceberg's place in a JDBC catalog, and in Glue.
        folder = f"{bronze}/{database}/{name}/data/k_topic={topic}"
        files = [
            info.path
            for info in filesystem.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
            if info.path.endswith(".parquet")
        ]
        if files:
            events = dataset.dataset(files, filesystem=filesystem, format="parquet")
            for batch in events.to_batches(batch_size=_ROWS_AT_ONCE):
                yield from batch.to_pylist()


def _has_columns(key: Mapping[str, str] | str, columns: Collection[str]) -> bool:
    return len(columns) == 1 if isinstance(key, str) else set(key) == set(columns)


def _key_text(key: Mapping[str, str] | str) -> str:
    """Return a key as a person writes it."""
    return key if isinstance(key, str) else ",".join(f"{name}={value}" for name, value in key.items())


def is_of(payload: Any, key: Mapping[str, str] | str) -> bool:
    """Return whether an event's key is this one: a text for each key column, or the only column's text."""
    if not isinstance(payload, dict) or not payload:
        return False
    if isinstance(key, str):
        return len(payload) == 1 and _as_text(next(iter(payload.values()))) == key
    return {name: _as_text(value) for name, value in payload.items()} == dict(key)


def _envelope(payload: Any) -> Mapping[str, Any]:
    """Return an event's payload in the shape of Debezium's envelope; empty if it is of no known shape."""
    if not isinstance(payload, dict):
        return {}
    if "__op" not in payload and "__deleted" not in payload:
        return payload if "op" in payload else {}
    # An unwrapped row (ExtractNewRecordState).
    values = {name: value for name, value in payload.items() if not name.startswith("__")}
    source = {
        name.removeprefix("__source_"): value
        for name, value in payload.items()
        if name.startswith("__source_")
    }
    if str(payload.get("__deleted")).lower() == "true":
        return {"op": "d", "before": values, "source": source}
    return {"op": payload.get("__op") or "u", "after": values, "source": source}


def _event(row: Mapping[str, Any], payload: Any) -> RowEvent:
    envelope = _envelope(payload)
    return RowEvent(
        topic=row["k_topic"],
        partition=row["k_partition"],
        offset=row["k_offset"],
        at=datetime.fromtimestamp(row["k_timestamp"] / 1000, UTC),
        op=envelope.get("op"),
        before=envelope.get("before"),
        after=envelope.get("after"),
        source=envelope.get("source") or {},
        moved_to=_text(row.get("moved_to")),
        moved_from=_text(row.get("moved_from")),
        is_tombstone=row["value"] is None,
    )


def _text(found: bytes | None) -> str | None:
    return None if found is None else found.decode(errors="replace")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
