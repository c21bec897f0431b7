"""An event means what its JSON says, in any layout of the JSON's bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from spark_app.columns.table_columns import merge
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.sources.files import FilesSource
from spark_app.wire.decode import decode
from spark_app.wire.forms import FORMS
from spark_app.wire.json_with_schemas import JsonWithSchemas
from spark_app.wire.json_without_schemas import JsonWithoutSchemas
from spark_app.wire.registry_avro import RegistryAvro
from spark_app.wire.schema_version import columns_of
from spark_app.wire.schema_versions import SchemaVersions
from spark_app.wire.sink_records import RecordsOfForms
from tests.parameters import first_then_long
from tests.soak import SOAKS
from tests.spark_app.debezium import TOPIC, SentEvent, SourceTable, event_row
from tests.spark_app.json_layouts import Json, laid_out, parse
from tests.spark_app.typed_frames import event_frame
from tests.spark_app.wire_forms import write_lines
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

LAYOUTS_OF_EACH_EVENT = 5
COLUMNS = {"id": "bigint", "name": "text", "body": "text", "price": "numeric(8,2)", "tags": "text[]"}
ONLY_KEY = TablePolicy(key=("id",))
DESCRIBED = TablePolicy.model_validate({"key": ("id",), "columns": COLUMNS})
METADATA = {"ts_us": "int64", "snapshot": "string", "sequence": "string", "txId": "int64", "lsn": "int64"}


@dataclass(frozen=True)
class Sent:
    """How a connector's events are written. `form` is the name of their wire form."""

    form: str
    is_unwrapped: bool
    policy: TablePolicy

    @property
    def has_schemas(self) -> bool:
        return self.form == JsonWithSchemas.name


SENT = {
    "envelopes with schemas": Sent(JsonWithSchemas.name, False, TablePolicy()),
    "envelopes with schemas, keyed by the lake file": Sent(JsonWithSchemas.name, False, ONLY_KEY),
    "envelopes without schemas": Sent(JsonWithoutSchemas.name, False, DESCRIBED),
    "unwrapped rows with schemas": Sent(JsonWithSchemas.name, True, ONLY_KEY),
    "unwrapped rows without schemas": Sent(JsonWithoutSchemas.name, True, DESCRIBED),
}


def test_every_form_of_json_is_among_these() -> None:
    assert {sent.form for sent in SENT.values()} == FORMS.keys() - {RegistryAvro.name}


@pytest.mark.parametrize("name", first_then_long(SENT, 2))
@settings(max_examples=100 if SOAKS else 4)
@given(seed=st.integers(0, 2**32))
def test_an_event_is_read_as_from_its_usual_bytes(spark: SparkSession, name: str, seed: int) -> None:
    sent, chance = SENT[name], random.Random(seed)
    usual = [event for event in written(sent) for _ in range(LAYOUTS_OF_EACH_EVENT)]
    others = [rewritten(event, sent, chance) for event in usual]

    assert changes(spark, others, sent.policy) == changes(spark, usual, sent.policy)


@pytest.mark.parametrize("name", ["unwrapped rows with schemas", "envelopes without schemas"])
@pytest.mark.parametrize("seed", first_then_long(range(3)))
def test_the_lines_of_a_file_are_read_as_from_their_usual_bytes(
    spark: SparkSession, tmp_path: Path, name: str, seed: int
) -> None:
    sent, chance = SENT[name], random.Random(seed)
    events = [replace(event, key=None, moved_to=None, moved_from=None) for event in written(sent)]
    offsets = [offset for offset, event in enumerate(events) if event.value is not None]
    cut = chance.randrange(1, len(offsets))
    for part in (offsets[:cut], offsets[cut:]):
        lines = [line(events[offset], sent, chance) for offset in part]
        write_lines(tmp_path / f"{TOPIC}-0-{part[0]}.gz", lines)
    source = FilesSource(spark, str(tmp_path), RecordsOfForms(), lambda _: sent.policy)
    end = source.extents(frozenset({TOPIC}))[TOPIC].end[0]

    found = decoded(source.read(TOPIC, (OffsetRange(0, 0, end),)), sent.policy)

    usual = changes(spark, events, sent.policy)
    assert [without_place(change) for change in found] == [without_place(change) for change in usual]


def test_an_envelope_schema_without_a_row_before_the_change_is_read(spark: SparkSession) -> None:
    sent = SENT["envelopes with schemas"]
    without_before = []
    for event in written(sent):
        document = event.value and parse(event.value)
        if document:
            document["schema"]["fields"] = document["schema"]["fields"][1:]
            del document["payload"]["before"]
        without_before.append(replace(event, value=document and laid_out(document, Usual())))

    assert changes(spark, without_before, sent.policy) == changes(spark, written(sent), sent.policy)


@pytest.mark.parametrize("frame", [b"%b", b'{"payload":%b}', b'{"schema": null, "payload": %b}'])
def test_the_row_gives_the_key_if_only_the_value_has_a_schema(spark: SparkSession, frame: bytes) -> None:
    sent = SENT["unwrapped rows with schemas"]
    keyless = [replace(event, key=None) for event in written(sent)]
    bare = [
        replace(event, key=event.key and frame % laid_out(parse(event.key)["payload"], Usual()))
        for event in written(sent)
    ]

    assert changes(spark, bare, sent.policy) == changes(spark, keyless, sent.policy)


def line(event: SentEvent, sent: Sent, chance: random.Random) -> bytes:
    """Return the event's value as Aiven's sink writes it, with or without an envelope of its own."""
    document = in_any_frame(parse(event.value or b""), sent, chance)
    return laid_out({"value": document} if chance.random() < 0.5 else document, chance, (" ", "\t"))


def rewritten(event: SentEvent, sent: Sent, chance: random.Random) -> SentEvent:
    def in_other_bytes(text: bytes | None) -> bytes | None:
        return text and laid_out(in_any_frame(parse(text), sent, chance), chance)

    return replace(event, key=in_other_bytes(event.key), value=in_other_bytes(event.value))


def in_any_frame(document: Json, sent: Sent, chance: random.Random) -> Json:
    """Return a payload alone, in a document without a schema, or in a document whose schema is null."""
    if sent.has_schemas:
        return document
    return chance.choice([document, {"payload": document}, {"schema": None, "payload": document}])


@cache
def written(sent: Sent) -> tuple[SentEvent, ...]:
    """Events of a small table as their connector writes them, with tombstones and a changed key."""
    things = SourceTable(columns=COLUMNS)
    things.begin()
    things.insert(1, "one", None, price=1.5, tags=["a", None, "ä"])
    things.insert(2, 'the "second"', "large", price=None, tags=[])
    things.commit()
    things.begin()
    things.update(2, "\\ \N{GRINNING FACE} {}[],:", None, body_is_unchanged=True)
    things.move(1, 3)
    things.delete(2)
    things.commit()
    things.snapshot()
    if not sent.is_unwrapped:
        things.truncate()

    def as_sent(text: bytes | None, *, is_unwrapped: bool) -> bytes | None:
        if text is None:
            return None
        document = unwrapped(parse(text)) if is_unwrapped else parse(text)
        return laid_out(document if sent.has_schemas else document["payload"], Usual())

    return tuple(
        replace(
            event,
            key=as_sent(event.key, is_unwrapped=False),
            value=as_sent(event.value, is_unwrapped=sent.is_unwrapped),
        )
        for event in things.events
    )


class Usual(random.Random):
    """Always chooses the usual bytes: no white space, no escapes, the order of the document."""

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def random(self) -> float:
        return 1.0


def unwrapped(document: Json) -> Json:
    """Return an envelope's row, as ExtractNewRecordState unwraps it."""
    payload = document["payload"]
    row = payload["after"] or payload["before"]
    metadata = {f"__source_{name}": payload["source"].get(name) for name in METADATA}
    is_deleted = "true" if payload["op"] == "d" else "false"
    types = {"__op": "string", "__deleted": "string"} | {f"__source_{n}": t for n, t in METADATA.items()}
    fields = [{"type": kind, "optional": True, "field": name} for name, kind in types.items()]
    (after,) = (field for field in document["schema"]["fields"] if field["field"] == "after")
    return {
        "schema": {"type": "struct", "fields": [*after["fields"], *fields], "optional": False},
        "payload": {**row, "__op": payload["op"], "__deleted": is_deleted, **metadata},
    }


def changes(spark: SparkSession, events: Sequence[SentEvent], policy: TablePolicy) -> list[Row]:
    rows = [event_row(event, offset) for offset, event in enumerate(events)]
    return decoded(event_frame(spark, rows).coalesce(1), policy)


def decoded(events: DataFrame, policy: TablePolicy) -> list[Row]:
    """Return all changes of the events. Events of one schema have one version, however they are written."""
    versions = SchemaVersions(policy, Events(), PostgresLog())
    versions.learn(events)
    assert len(versions.learned) <= 2, "a truncate has no key, so its version is another one"
    columns = merge(None, [columns_of(version) for version in versions.known])
    assert columns is not None
    found = decode(events, versions.known, columns, PostgresLog()).orderBy("offset").collect()
    assert {change["reason"] for change in found} == {None}
    return found


def without_place(change: Row) -> dict[str, Any]:
    """Return the change without offsets.

    A file does not say where a tombstone was, so the offsets of later events are unknown, too."""
    return {name: value for name, value in change.asDict().items() if name != "offset"}
