"""An Avro schema that Kafka Connect wrote gives back the Connect schema that it was made from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_app.wire.avro_schema import UnreadableAvro, read_avro_schema
from spark_app.wire.connect_schema import ConnectSchema, parse_schema
from tests.spark_app.test_recorded_events import recorded
from tests.spark_app.wire_forms import avro_schema

SCHEMAS = sorted(
    {
        event.value.partition(b',"payload":')[0].decode() + "}"
        for event in recorded()
        if event.value is not None and event.value.startswith(b'{"schema":')
    }
)


@pytest.mark.parametrize("text", SCHEMAS, ids=range(len(SCHEMAS)))
def test_columns_have_the_types_and_semantic_types_that_they_had(text: str) -> None:
    schema = json.loads(text)["schema"]
    read = read_avro_schema(json.dumps(avro_schema(schema, set())))
    for place in ("before", "after", "source", "op"):
        found, sent = parse_schema(read.connect).field(place), parse_schema(json.dumps(schema)).field(place)
        assert found is not None
        assert sent is not None
        assert known(found) == known(sent)


def known(schema: ConnectSchema) -> Any:
    """Return what determines a column's type in the lake. A record has to have a name in Avro."""
    wanted = {"scale", "connect.decimal.precision"}
    return (
        schema.type,
        schema.name,
        [parameter for parameter in schema.parameters if parameter[0] in wanted],
        [(name, known(field)) for name, field in schema.fields],
        schema.items and known(schema.items),
    )


def test_a_schema_without_connects_own_remarks_is_read_by_its_logical_types() -> None:
    fields = [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON"]}},
    ]
    read = read_avro_schema(json.dumps({"type": "record", "name": "Row", "fields": fields}))
    row = dict(parse_schema(read.connect).fields)
    assert {name: schema.name for name, schema in row.items()} == {
        "price": "org.apache.kafka.connect.data.Decimal",
        "day": "org.apache.kafka.connect.data.Date",
        "at": "io.debezium.time.MicroTimestamp",
        "state": None,
    }
    assert row["price"].parameter("connect.decimal.precision") == "9"


@pytest.mark.parametrize(
    "schema",
    ['"string"', '{"type":"record","name":"R","fields":[{"name":"a","type":["string","int"]}]}'],
)
def test_what_connect_does_not_write_is_refused(schema: str) -> None:
    with pytest.raises(UnreadableAvro):
        read_avro_schema(schema)
