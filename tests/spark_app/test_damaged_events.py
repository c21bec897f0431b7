"""Events in the damaged forms that a fault or an attacker can leave in a topic."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_app.positions.postgres import PostgresLog
from spark_app.wire.decode import decode
from spark_app.wire.json_with_schemas import read_schema_version
from spark_app.wire.lake_types import conversion
from spark_app.wire.reasons import REASONS
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion, columns_of
from tests.soak import SOAKS
from tests.spark_app.debezium import TYPES, SentEvent, SourceTable, event_row
from tests.spark_app.typed_frames import event_frame
from tributary.contract.errors import TributaryError

SCHEMAS = 100_000 if SOAKS else 1_000
BATCHES, EVENTS_OF_A_BATCH = (100 if SOAKS else 2), 1_000

EXTREMES: Sequence[Any] = (
    *(2**31, -(2**31), 2**63 - 1, -(2**63), 2**64, 10**40, 1e308, -0.0, 9_223_372_036_825_200),
    *("AQI", "A===", "!!!!", "/w==", " ", "x" * 100_000, "9" * 1_000, "P", "+999999999-12-31T23:59:59Z"),
    *("24:00:00", "infinity", "NAN", {"scale": -5, "value": "AQ=="}, {"scale": 2**31 - 1, "value": "AQ=="}),
    *({"scale": 2, "value": "!"}, {"scale": None, "value": None}, ["!"], [None], [2**63 - 1], {"a": None}),
)

Json = Any
Path = tuple[str | int, ...]

JUNK: Sequence[Json] = (
    *(None, True, 0, -1, 7, 10**30, 1.5, "", "x", "-1", "NaN", "a.b", "\u0000", "'; DROP TABLE things; --"),
    *("int32", "struct", "array", "bytes", "io.debezium.time.Date", "org.apache.kafka.connect.data.Decimal"),
    *([], {}, [1], {"a": 1}, [[]], {"": {}}),
)


def source_type(name: str, length: int, scale: int | None) -> Mapping[str, str]:
    told = {"type": name, "length": str(length)} | ({} if scale is None else {"scale": str(scale)})
    return {f"__debezium.source.column.{of}": value for of, value in told.items()}


MORE_COLUMNS: Mapping[str, tuple[Json, Json]] = {
    "a_date": ({"type": "int32", "name": "io.debezium.time.Date"}, 19_000),
    "a_time": ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 3_600_000_001),
    "a_moment": ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, 1_700_000_000_000_001),
    "a_short_moment": ({"type": "int64", "name": "io.debezium.time.Timestamp"}, 1_700_000_000_000),
    "a_zoned_moment": ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "2026-01-01T00:00:00Z"),
    "an_interval": ({"type": "string", "name": "io.debezium.time.Interval"}, "P1Y2M3DT4H5M6.789S"),
    "a_number": ({"type": "string", "parameters": source_type("NUMERIC", 12, 3)}, "123.456"),
    "any_number": ({"type": "string", "parameters": source_type("NUMERIC", 0, 0)}, "1.50"),
    "own_scale": (
        {
            "type": "struct",
            "name": "io.debezium.data.VariableScaleDecimal",
            "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
        },
        {"scale": 2, "value": "AQI="},
    ),
    "a_map": ({"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}}, {"a": "b"}),
    "blobs": ({"type": "array", "items": {"type": "bytes", "optional": True}}, ["AQI=", None]),
    "moments": (
        {"type": "array", "items": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}},
        [1_700_000_000_000_001],
    ),
}


def with_more_columns(event: SentEvent) -> SentEvent:
    assert event.value is not None
    value = json.loads(event.value)
    for row in value["schema"]["fields"][:2]:
        row["fields"] += [
            {**schema, "optional": True, "field": name} for name, (schema, _) in MORE_COLUMNS.items()
        ]
    if value["payload"]["after"] is not None:
        value["payload"]["after"] |= {name: sent for name, (_, sent) in MORE_COLUMNS.items()}
    return replace(event, value=text(value).encode())


def events_of_every_type() -> list[SentEvent]:
    columns = {"id": "bigint", "name": "text", "body": "text"}
    others = {f"column_{number}": data_type for number, data_type in enumerate(TYPES)}
    shop = SourceTable(columns=columns | others)
    shop.begin()
    shop.insert(1, "one", "large", column_0=7, column_7="{}", column_8=b"bytes", column_9=["a", None])
    shop.update(1, "two", None, body_is_unchanged=True)
    shop.commit()
    shop.delete(1)
    shop.truncate()
    return [with_more_columns(event) for event in shop.events if event.value is not None]


def schemas(event: SentEvent) -> tuple[Json, Json]:
    assert event.key is not None
    assert event.value is not None
    return json.loads(event.key)["schema"], json.loads(event.value)["schema"]


def text(found: Json) -> str:
    return json.dumps(found, separators=(",", ":"))


EVENTS = events_of_every_type()


def paths(found: Json, path: Path = ()) -> Iterator[Path]:
    """Return the paths of all values in the document, except the document itself."""
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for place, value in inner:
        yield (*path, place)
        yield from paths(value, (*path, place))


def damaged(found: Json, chance: random.Random) -> Json:
    """Return the document with one to three of its values removed, replaced or doubled."""
    result = deepcopy(found)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(paths(result))
        if not places:
            break
        *way, last = chance.choice(places)
        inside: Any = result
        for place in way:
            inside = inside[place]
        match chance.randrange(10):
            case 0 | 1 | 2:
                del inside[last]
            case 3 if isinstance(last, int):
                inside.append(deepcopy(inside[last]))
            case _:
                inside[last] = deepcopy(chance.choice(JUNK))
    return result


@settings(max_examples=SCHEMAS)
@given(chance=st.randoms(use_true_random=False))
def test_a_damaged_schema_is_read_or_refused_and_nothing_else(chance: random.Random) -> None:
    key, value = schemas(EVENTS[0])
    texts = SchemaTexts(
        text(damaged(key, chance) if chance.random() < 0.4 else key), text(damaged(value, chance))
    )
    try:
        version = read_schema_version(texts)
        columns_of(version)
    except TributaryError:
        return
    for name, schema in (*version.key, *version.row):
        assert conversion(name, schema).lake is not None


@dataclass(frozen=True)
class Damage:
    """A change to a whole event, and the reasons for which it may be set aside. None: it may be good."""

    do: Callable[[SentEvent, random.Random], tuple[bytes | None, bytes]]
    reasons: frozenset[str | None]


ANY_REASON: frozenset[str | None] = frozenset(REASONS)


def in_payload(change: Callable[[Json, random.Random], None]) -> Callable[..., tuple[bytes | None, bytes]]:
    def do(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
        assert event.value is not None
        value = json.loads(event.value)
        change(value["payload"], chance)
        return event.key, text(value).encode()

    return do


def _other_operation(payload: Json, chance: random.Random) -> None:
    payload["op"] = chance.choice(("", "C", "x", "cc", None, 1, [], {}))


def _no_row(payload: Json, chance: random.Random) -> None:
    payload.update(after=None, op=chance.choice("cur"))


def _row_of_another_type(payload: Json, chance: random.Random) -> None:
    column = chance.choice(("id", "column_0", "column_1"))
    payload.update(op="u", after={"id": 1, column: chance.choice(("x", 1.5, 10**30, [], {}, True))})


def _any_value_in_the_row(payload: Json, chance: random.Random) -> None:
    if payload["after"] is not None:
        payload["after"][chance.choice(list(payload["after"]))] = chance.choice((*JUNK, *EXTREMES))


def _cut(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    return event.key, event.value[: chance.randrange(1, len(event.value))]


def _not_utf8(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    place = event.value.index(b'"op"') + 1
    return event.key, event.value[:place] + bytes([chance.choice((0x80, 0xC0, 0xFF))]) + event.value[place:]


def _noise(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    value = bytearray(event.value)
    for _ in range(chance.choice((1, 2, 8))):
        value[chance.randrange(len(value))] = chance.randrange(256)
    return event.key, bytes(value)


def _anything_in_payload(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    value = json.loads(event.value)
    return event.key, text({**value, "payload": damaged(value["payload"], chance)}).encode()


def _anything_in_key(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    assert event.key is not None
    assert event.value is not None
    key = json.loads(event.key)
    return text({**key, "payload": damaged(key["payload"], chance)}).encode(), event.value


def _deep(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    depth = chance.choice((10, 2_000, 20_000))
    assert event.value is not None
    head, _, tail = event.value.partition(b'"payload":')
    return event.key, head + b'"payload":' + b"[" * depth + b"]" * depth + tail[-1:]


def _bytes(event: SentEvent, chance: random.Random) -> tuple[bytes | None, bytes]:
    return event.key, chance.randbytes(chance.randrange(1, 300))


def _base64(event: SentEvent, _: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    return event.key, base64.b64encode(event.value)


def _without_key(event: SentEvent, _: random.Random) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    return None, event.value


DAMAGES: Mapping[str, Damage] = {
    "cut off": Damage(_cut, frozenset({"not_json", "no_schema", "unknown_schema", "mismatch"})),
    "not UTF-8": Damage(_not_utf8, frozenset({"not_utf8"})),
    "base64": Damage(_base64, frozenset({"not_json"})),
    "bytes": Damage(_bytes, frozenset({"not_utf8", "not_json", "no_schema", "unknown_schema"})),
    "another operation": Damage(in_payload(_other_operation), frozenset({"unknown_operation", "mismatch"})),
    "no row": Damage(in_payload(_no_row), frozenset({"missing_row"})),
    "any value in the row": Damage(in_payload(_any_value_in_the_row), ANY_REASON | {None}),
    "another type": Damage(in_payload(_row_of_another_type), frozenset({"mismatch"})),
    "without a key": Damage(_without_key, frozenset({"missing_key", "unknown_schema"})),
    "deep": Damage(_deep, ANY_REASON),
    "noise": Damage(_noise, ANY_REASON | {None}),
    "anything in the payload": Damage(_anything_in_payload, ANY_REASON | {None}),
    "anything in the key": Damage(_anything_in_key, ANY_REASON | {None}),
}


@pytest.mark.parametrize("seed", range(BATCHES))
def test_each_damaged_event_is_read_or_set_aside_with_a_reason_and_its_neighbors_are_read(
    spark: SparkSession, seed: int
) -> None:
    chance = random.Random(seed)
    version = known_version()
    rows: list[tuple[object, ...]] = []
    damages: dict[int, str] = {}
    good: dict[int, SentEvent] = {}
    for offset in range(EVENTS_OF_A_BATCH):
        event = chance.choice(EVENTS)
        if chance.random() < 0.2 or event.key is None:
            good[offset] = event
            rows.append(event_row(event, offset))
            continue
        damages[offset] = chance.choice(list(DAMAGES))
        key, value = DAMAGES[damages[offset]].do(event, chance)
        topic, partition, _, timestamp, *_ = event_row(event, offset)
        rows.append(
            (topic, partition, offset, timestamp, key and bytearray(key), bytearray(value), None, None)
        )
    found = decoded(spark, rows, version)

    assert found.keys() == {*damages, *good}
    for offset, damage in damages.items():
        change = found[offset]
        assert change["reason"] in DAMAGES[damage].reasons, (damage, change, rows[offset])
        if change["reason"] is None:
            assert change["op"] in "crudt"
            assert (change["key"] is None) == (change["op"] == "t"), (damage, change)
    alone = decoded(spark, [event_row(event, number) for number, event in enumerate(EVENTS)], version)
    for offset, event in good.items():
        assert without_offset(found[offset]) == without_offset(alone[EVENTS.index(event)])


def known_version() -> SchemaVersion:
    key, value = schemas(EVENTS[0])
    return read_schema_version(SchemaTexts(text(key), text(value)))


def decoded(
    spark: SparkSession, rows: Sequence[tuple[object, ...]], version: SchemaVersion
) -> dict[int, Row]:
    changes = decode(event_frame(spark, rows), (version,), columns_of(version), PostgresLog())
    # Python's datetime ends with the year 9999, the lake's timestamps much later.
    as_text = {name: F.col(name).cast("string") for name in ("row", "source_ts")}
    return {change["offset"]: change for change in changes.withColumns(as_text).collect()}


def without_offset(change: Row) -> dict[str, Any]:
    return {name: value for name, value in change.asDict().items() if name != "offset"}
