"""Recorded events of a real Debezium and PostgreSQL are applied as they came."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy

pytestmark = pytest.mark.usefixtures("each_way")

RECORDED = Path(__file__).parent / "data" / "recorded_envelopes.jsonl"
PLACEHOLDER = "__debezium_unavailable_value"
# The columns that both forms of a table's values share: numbers and texts. Dates are sent as numbers of days.
COMPARED = {
    "category": ("catid", "catname"),
    "listing": ("listid", "sellerid", "priceperticket", "totalprice", "note", "details", "tags"),
    "sales": ("salesid", "part", "qtysold", "pricepaid", "commission"),
}
KEYS = {"category": ("catid",), "listing": ("listid",), "sales": ("salesid", "part")}


@dataclass(frozen=True)
class Recorded:
    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    moved_to: bytes | None
    moved_from: bytes | None

    @property
    def table(self) -> str:
        return self.topic.rsplit(".", 1)[-1]


def recorded() -> Iterator[Recorded]:
    for line in RECORDED.read_text().splitlines():
        found = json.loads(line)
        texts = (found[name] for name in ("key", "value", "moved_to", "moved_from"))
        decoded = [None if text is None else base64.b64decode(text) for text in texts]
        yield Recorded(found["topic"], found["offset"], *decoded)


def state_of(events: list[Recorded], table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the table after all of the events, by key."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    gone: dict[tuple[Any, ...], dict[str, Any]] = {}

    def key_of(payload: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(payload[name] for name in KEYS[table])

    for event in events:
        try:
            payload = json.loads(event.value or b"null", parse_float=Decimal)["payload"]
        except (ValueError, TypeError, KeyError):
            continue
        if payload["op"] == "t":
            rows.clear()
            continue
        key = key_of(json.loads(event.key or b"")["payload"])
        if payload["op"] == "d":
            gone[key] = rows.pop(key)
            continue
        old = gone[key_of(json.loads(event.moved_from))] if event.moved_from else rows.get(key, {})
        after = payload["after"]
        rows[key] = {name: old[name] if value == PLACEHOLDER else value for name, value in after.items()}
    return {key: {name: row.get(name) for name in COMPARED[table]} for key, row in rows.items()}


@pytest.mark.parametrize(
    ("policy", "at_once"),
    [
        pytest.param(TablePolicy(), 15, id="cut into batches", marks=pytest.mark.long),
        pytest.param(TablePolicy(storage="copy_on_write", deletes="soft"), 1000, id="at once"),
    ],
)
@pytest.mark.parametrize("table", first_then_long(sorted(COMPARED)))
def test_real_events_of_every_kind_leave_the_rows_that_the_database_had(
    spark: SparkSession, tmp_path: Path, table: str, policy: TablePolicy, at_once: int
) -> None:
    events = [event for event in recorded() if event.table == table and not holds_what_the_lake_cannot(event)]
    ingest = ingest_of(spark, tmp_path, events, policy)

    apply_all(ingest, at_once)

    found = ingest.hudi.read()
    # Python has no infinite dates, which some of the other columns hold.
    names = [name for name in (*COMPARED[table], "_deleted") if name in found.columns]
    rows = [row.asDict(recursive=True) for row in found.select(*names).collect()]
    present = {
        tuple(row[name] for name in KEYS[table]): {name: row[name] for name in COMPARED[table]}
        for row in rows
        if not row.get("_deleted")
    }
    assert present == state_of(events, table)


def test_what_is_no_event_is_kept_in_quarantine_with_its_reason_and_bytes(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = [event for event in recorded() if event.table == "listing"]
    ingest = ingest_of(spark, tmp_path, events, TablePolicy())

    apply_all(ingest, 1000)

    kept = spark.read.parquet(f"{ingest.quarantine_path}/*").orderBy("offset").collect()
    assert {row["reason"] for row in kept[:-3]} == {"mismatch"}
    assert [(row["offset"], row["reason"], bytes(row["value"])) for row in kept[-3:]] == [
        (49, "not_utf8", b"\x80\x81 not utf-8"),
        (50, "not_json", b"not json"),
        (51, "no_schema", b'{"a":1}'),
    ]


def test_a_table_without_a_key_is_set_aside_whole_and_never_made(spark: SparkSession, tmp_path: Path) -> None:
    events = [event for event in recorded() if "visit" in event.topic]
    ingest = ingest_of(spark, tmp_path, events, TablePolicy())

    apply_all(ingest, 1000)

    assert not ingest.hudi.exists()
    kept = spark.read.parquet(f"{ingest.quarantine_path}/*")
    assert {row["reason"] for row in kept.collect()} == {"missing_key"}
    assert kept.count() == sum(event.value is not None and b'"op":"t"' not in event.value for event in events)


def holds_what_the_lake_cannot(event: Recorded) -> bool:
    """Return whether the event's row has, at some time, a numeric of hundreds of digits as a JSON number."""
    return event.table == "listing" and any(
        f'"listid":{number}}}'.encode() in text
        for number in (8, 108)
        for text in (event.key or b"", event.moved_from or b"")
    )


def ingest_of(
    spark: SparkSession,
    folder: Path,
    events: list[Recorded],
    policy: TablePolicy,
    registry: SchemaRegistry | None = None,
) -> TableIngest:
    def binary(found: bytes | None) -> bytearray | None:
        return None if found is None else bytearray(found)

    timestamp = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        (e.topic, 0, e.offset, timestamp, *map(binary, (e.key, e.value, e.moved_to, e.moved_from)))
        for e in events
    ]
    return TableIngest(
        name=events[0].topic,
        topic=events[0].topic,
        source=MemorySource(spark, rows),
        hudi=HudiTable(spark, str(folder / "silver"), "recorded", policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(PostgresLog(), registry=registry),
    )


def apply_all(ingest: TableIngest, at_once: int) -> None:
    extent = ingest.source.extents(frozenset({ingest.topic}))[ingest.topic]
    while ranges := ingest.pending(extent, at_once):
        ingest.apply(ranges)
