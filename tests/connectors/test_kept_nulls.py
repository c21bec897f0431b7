"""Our transform keeps NULL where a converter would write a column's default, at any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def field(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, "optional": True, **more}


def struct(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "name": name, "fields": list(fields), **more}


WITH_DEFAULT = field("note", default="none")
INNER = struct("Inner", WITH_DEFAULT)
SCHEMA = struct(
    "Envelope",
    {**struct("Row", WITH_DEFAULT, field("count", "int32", default=7)), "field": "after", "optional": True},
    {"field": "items", "type": "array", "optional": True, "items": {**INNER, "optional": True}},
    {
        "field": "named",
        "type": "map",
        "optional": True,
        "keys": {"type": "string"},
        "values": {**INNER, "optional": True},
    },
    {"field": "state", "type": "string", "optional": False, "default": "new"},
)
PAYLOAD = {
    "after": {"note": None, "count": None},
    "items": [{"note": None}, None, {"note": "a"}],
    "named": {"x": {"note": None}, "y": None},
    "state": "new",
}
PLAIN = struct(
    "Plain", field("note"), {"field": "state", "type": "string", "optional": False, "default": "new"}
)


def converter(jvm: Any, **options: str) -> Any:
    found = jvm.org.apache.kafka.connect.json.JsonConverter()
    found.configure(options, False)
    return found


def record(jvm: Any, schema: dict[str, Any], payload: Any) -> Any:
    reader = converter(jvm, **{"replace.null.with.default": "false"})
    found = reader.toConnectData("t", json.dumps({"schema": schema, "payload": payload}).encode())
    return jvm.org.apache.kafka.connect.source.SourceRecord(
        {}, {}, "t", None, found.schema(), found.value(), found.schema(), found.value()
    )


def written(jvm: Any, record: Any) -> Any:
    """Return the value as JsonConverter writes it by default: like the Avro converters, with defaults."""
    writer = converter(jvm, **{"schemas.enable": "false"})
    return json.loads(bytes(writer.fromConnectData("t", record.valueSchema(), record.value())))


def test_a_null_stays_null_at_any_depth_and_everything_else_stays(jvm: Any) -> None:
    before = record(jvm, SCHEMA, PAYLOAD)
    assert written(jvm, before)["after"] == {"note": "none", "count": 7}

    after = jvm.io.tributary.connect.KeptNulls().apply(before)

    assert written(jvm, after) == PAYLOAD
    assert after.keySchema().field("after").schema().field("note").schema().defaultValue() is None
    assert after.valueSchema().field("state").schema().defaultValue() == "new"
    assert after.valueSchema().name() == "Envelope"


def test_a_tombstone_and_a_record_without_such_defaults_pass_unchanged(jvm: Any) -> None:
    transform = jvm.io.tributary.connect.KeptNulls()
    plain = record(jvm, PLAIN, {"note": None, "state": "new"})
    assert transform.apply(plain).equals(plain)
    tombstone = jvm.org.apache.kafka.connect.source.SourceRecord({}, {}, "t", None, None, None, None, None)
    assert transform.apply(tombstone).value() is None


def test_events_of_one_schema_keep_one_schema(jvm: Any) -> None:
    transform, before = jvm.io.tributary.connect.KeptNulls(), record(jvm, SCHEMA, PAYLOAD)
    same = jvm.java.util.Objects
    one, other = transform.apply(before), transform.apply(before)
    identity = jvm.java.lang.System.identityHashCode
    assert same.equals(one.valueSchema(), other.valueSchema())
    assert identity(one.valueSchema()) == identity(other.valueSchema())
