"""A row's events are found in the files of bronze by its key, each once, and in order."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.registry import RegistryAway, SchemaUnknown
from tributary.api.event_payloads import EventPayloads, SchemasMissing
from tributary.api.row_events import (
    NotAKey,
    RowEvent,
    RowState,
    parse_key,
    read_row_events,
    row_at,
    with_previous,
)
from tributary.contract.unchanged_value import PLACEHOLDER, PLACEHOLDER_BASE64, PLACEHOLDER_UUID

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOPIC, NAMESPACE = "shop.web.public.orders", "shop_bronze"


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    place = folder / "bronze" / NAMESPACE / "events" / "data" / f"k_topic={TOPIC}"
    place.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), place / name)


def event(offset: int, key: Any, op: str | None, before: Any = None, after: Any = None) -> dict[str, Any]:
    value = None if op is None else {"schema": {}, "payload": {"op": op, "before": before, "after": after}}
    return {
        "k_topic": TOPIC,
        "k_partition": 0,
        "k_offset": offset,
        "k_timestamp": 1_700_000_000_000 + offset,
        "key": json.dumps({"schema": {}, "payload": key}).encode(),
        "value": None if value is None else json.dumps(value).encode(),
    }


@pytest.fixture
def bronze(tmp_path: Path) -> SubTreeFileSystem:
    one = [event(0, {"id": 1}, "c", after={"id": 1, "a": 1}), event(1, {"id": 11}, "c", after={"id": 11})]
    two = [
        event(2, {"id": 1}, "u", before={"id": 1, "a": 1}, after={"id": 1, "a": 2}),
        event(3, {"id": 1}, "d", before={"id": 1, "a": 2}),
        event(4, {"id": 1}, None),
    ]
    write(tmp_path, "2.parquet", two)
    write(tmp_path, "1.parquet", one)
    write(tmp_path, "again.parquet", one)  # Of a commit that failed.
    return SubTreeFileSystem(str(tmp_path), LocalFileSystem())


def test_every_event_of_the_key_is_there_once_and_in_order(bronze: SubTreeFileSystem) -> None:
    found = read_row_events(bronze, "bronze", NAMESPACE, TOPIC, "1", EventPayloads())
    assert [(one.offset, one.op) for one in found] == [(0, "c"), (2, "u"), (3, "d"), (4, None)]
    assert found[1].changed == {"a": (1, 2)}
    assert found[0].changed == {}
    assert found[2].before == {"id": 1, "a": 2}


def test_unwrapped_rows_are_events_too(tmp_path: Path) -> None:
    def unwrapped(offset: int, **payload: Any) -> dict[str, Any]:
        row = {"id": 1, "op": "a column", **payload, "__source_ts_ms": 7}
        return {**event(offset, {"id": 1}, None), "value": json.dumps({"payload": row}).encode()}

    sent = [unwrapped(0, __op="c"), unwrapped(1, __deleted="false"), unwrapped(2, __deleted="true")]
    write(tmp_path, "1.parquet", sent)
    bronze = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    found = read_row_events(bronze, "bronze", NAMESPACE, TOPIC, "1", EventPayloads())
    row = {"id": 1, "op": "a column"}
    assert [(one.op, one.before, one.after) for one in found] == [
        ("c", None, row),
        ("u", None, row),
        ("d", row, None),
    ]
    assert found[0].source == {"ts_ms": 7}


@pytest.mark.parametrize("key", [{"order": "1"}, {"id": "1", "line": "2"}, {}])
def test_a_key_of_other_columns_is_refused_with_the_columns_of_the_table_s_key(
    bronze: SubTreeFileSystem, key: dict[str, str]
) -> None:
    with pytest.raises(NotAKey, match="expected id=…"):
        read_row_events(bronze, "bronze", NAMESPACE, TOPIC, key, EventPayloads())
    for other in ("7", "abc", {"id": "7"}):
        assert read_row_events(bronze, "bronze", NAMESPACE, TOPIC, other, EventPayloads()) == ()


def test_a_topic_without_files_has_no_events(bronze: SubTreeFileSystem) -> None:
    assert read_row_events(bronze, "bronze", NAMESPACE, "shop.web.public.none", "1", EventPayloads()) == ()


ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "raw", "type": "bytes"},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [{"name": "op", "type": "string"}, {"name": "after", "type": ["null", ROW]}],
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
SCHEMAS: dict[int, Any] = {1: KEY, 2: ENVELOPE}


class Schemas:
    """A registry that has `SCHEMAS`, or that does not answer."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.is_away = is_away

    def schema(self, schema_id: SchemaId) -> str:
        if self.is_away:
            raise RegistryAway("nobody listens")
        if schema_id.number not in SCHEMAS:
            raise SchemaUnknown
        return json.dumps(SCHEMAS[schema_id.number])


def framed(number: int, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMAS[min(number, 2)], record)
    return b"\0" + number.to_bytes(4) + out.getvalue()


AFTER = {"id": 1, "price": Decimal("12.50"), "day": 20_000, "raw": b"\xff"}


def test_events_in_avro_are_shown_as_those_in_json(tmp_path: Path) -> None:
    created = {"op": "c", "after": {**AFTER, "day": date(2024, 10, 4)}}
    rows = [event(offset, {}, None) for offset in range(3)]
    rows[0] |= {"key": framed(1, {"id": 1}), "value": framed(2, created)}
    rows[1] |= {"key": framed(1, {"id": 1}), "value": framed(2, created)[:9]}
    rows[2] |= {"key": framed(1, {"id": 1}), "value": framed(3, created)}
    write(tmp_path, "1.parquet", rows)
    bronze = SubTreeFileSystem(str(tmp_path), LocalFileSystem())

    found = read_row_events(bronze, "bronze", NAMESPACE, TOPIC, "1", EventPayloads(Schemas()))

    assert [one.kind for one in found] == ["created", "unreadable", "unreadable"]
    assert found[0].after == {"id": 1, "price": "12.50", "day": 20_000, "raw": "/w=="}
    for payloads, why in (
        (EventPayloads(), "names none"),
        (EventPayloads(Schemas(is_away=True)), "does not answer"),
    ):
        with pytest.raises(SchemasMissing, match=why):
            read_row_events(bronze, "bronze", NAMESPACE, TOPIC, "1", payloads)


def test_the_row_at_a_time_is_what_its_last_change_has_left(bronze: SubTreeFileSystem) -> None:
    found = read_row_events(bronze, "bronze", NAMESPACE, TOPIC, "1", EventPayloads())

    def at(milliseconds: int) -> RowState | None:
        return row_at(found, datetime.fromtimestamp(1_700_000_000 + milliseconds / 1000, UTC))

    assert at(-1) is None
    assert at(1) == RowState(found[0], {"id": 1, "a": 1})
    assert at(2) == RowState(found[1], {"id": 1, "a": 2})
    assert at(99) == RowState(found[2], None), "a tombstone is no change"


@pytest.mark.parametrize("sent", [PLACEHOLDER, PLACEHOLDER_BASE64, PLACEHOLDER_UUID, [PLACEHOLDER]])
def test_a_large_value_that_an_update_leaves_out_is_that_of_the_event_before(sent: Any) -> None:
    def change(offset: int, op: str, **after: Any) -> RowEvent:
        common = dict.fromkeys(("before", "moved_to", "moved_from"))
        return RowEvent(TOPIC, 0, offset, NOW, op, after=after, source={}, is_tombstone=False, **common)

    first, second = change(0, "c", id=1, a=1, big="text"), change(1, "u", id=1, a=2, big=sent)
    assert row_at([first, second], NOW) == RowState(second, {"id": 1, "a": 2, "big": "text"})
    alone = row_at([second], NOW)
    assert alone is not None
    assert alone.unknown == {"big"}


def test_an_update_without_the_row_before_it_shows_what_differs_from_the_event_before() -> None:
    def change(offset: int, op: str | None, after: Any, **more: Any) -> RowEvent:
        common = {"before": None, "moved_to": None, "moved_from": None, "is_tombstone": op is None}
        return RowEvent(TOPIC, 0, offset, NOW, op, after=after, source={}, **{**common, **more})

    events = [
        change(0, "u", {"id": 1, "a": 0}),
        change(1, "u", {"id": 1, "a": 1, "big": "text"}),
        change(2, None, None),
        change(3, "u", {"id": 1, "a": 2, "big": PLACEHOLDER}),
        change(4, "u", {"id": 1, "a": 2, "big": "more"}),
        change(5, "d", None),
        change(6, "r", {"id": 1, "a": 3}),
        change(7, "u", {"id": 1, "a": 5}, before={"id": 1, "a": 4}),
    ]
    assert [one.changed for one in with_previous(events)] == [
        {},
        {"a": (0, 1), "big": (None, "text")},
        {},
        {"a": (1, 2)},
        {"big": ("text", "more")},
        {},
        {},
        {"a": (4, 5)},
    ]


def test_a_change_is_as_old_as_its_commit_but_a_snapshots_row_as_its_event() -> None:
    late = {"ts_ms": 1_600_000_000_000}
    common = dict.fromkeys(("before", "moved_to", "moved_from"))
    change, read = (
        RowEvent(TOPIC, 0, 0, NOW, op, after={}, source=late, is_tombstone=False, **common) for op in "ur"
    )
    assert change.committed == datetime.fromtimestamp(1_600_000_000, UTC)
    assert read.committed == NOW


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("7", "7"),
        (" a b ", "a b"),
        ("id=7", {"id": "7"}),
        ("order=7, line=2", {"order": "7", "line": "2"}),
        ('{"id": 7, "x": "a=b"}', {"id": "7", "x": "a=b"}),
    ],
)
def test_a_key_can_be_written_in_several_ways(text: str, key: Any) -> None:
    assert parse_key(text) == key


@pytest.mark.parametrize("text", ["", "  ", "id=7,8", "=7", "{"])
def test_a_text_that_names_no_key_is_refused(text: str) -> None:
    with pytest.raises(NotAKey):
        parse_key(text)
