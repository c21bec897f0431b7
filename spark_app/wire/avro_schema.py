"""Avro schemas: the Connect schema that each stands for, and the schema to read its records with.

Source: io.confluent.connect.avro.AvroData. All sinks write with it, and so do the converters of Confluent,
Apicurio and AWS Glue, which have copies of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_app.wire.connect_schema import WRITTEN_AS_BASE64, WRITTEN_AS_NUMBER
from spark_app.wire.decimals import MAX_DECIMAL_PRECISION
from tributary.contract.errors import TributaryError

Json = Mapping[str, Any]


class UnreadableAvro(TributaryError):
    """An Avro schema that Kafka Connect does not write."""


@dataclass(frozen=True)
class AvroSchema:
    """What follows from the schema of a record.

    reader   the schema for Spark to read the records with, so that values arrive as JsonConverter writes them
    connect  the schema that JsonConverter would have written
    fields   the names of the record's fields
    """

    reader: str
    connect: str
    fields: tuple[str, ...]


def read_avro_schema(text: str) -> AvroSchema:
    """Return the schemas that follow from the schema of a record. Raises `UnreadableAvro`."""
    try:
        schema = json.loads(text)
    except ValueError:
        schema = None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise UnreadableAvro(
            what="An Avro schema is not that of a record",
            found=text[:200],
            expected="a record: a Debezium envelope or an unwrapped row",
        )
    connect = _ConnectSchemas().node(schema, None)
    return AvroSchema(
        reader=json.dumps(_as_written(schema)),
        connect=json.dumps(connect, separators=(",", ":"), ensure_ascii=False),
        fields=tuple(one["name"] for one in schema["fields"]),
    )


def _as_written(schema: Any) -> Any:
    """Return the schema without the logical types that Spark would convert, except decimals it can hold."""
    match schema:
        case list():
            return [_as_written(branch) for branch in schema]
        case {"logicalType": "decimal"} if _fits_a_decimal(schema):
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "scale": schema.get("scale", 0),
                "precision": MAX_DECIMAL_PRECISION,
            }
        case dict():
            kept = {name: value for name, value in schema.items() if name not in _NOT_FOR_READING}
            for name in ("type", "items", "values"):
                if name in kept:
                    kept[name] = _as_written(kept[name])
            if "fields" in kept:
                kept["fields"] = [_as_written(one) for one in kept["fields"]]
            return kept
        case _:
            return schema


def _fits_a_decimal(schema: Json) -> bool:
    """Return whether Spark can hold each number of the type. Its reader fails on one that it cannot hold."""
    fits = 0 <= int(schema.get("scale", 0)) <= int(schema["precision"]) <= MAX_DECIMAL_PRECISION
    return fits and schema.get("type") == "bytes"


_NOT_FOR_READING = ("logicalType", "precision", "scale", "default", "doc")
_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "enum": "string",
    "fixed": "bytes",
}
_LOGICAL_NAMES = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
}


@dataclass
class _ConnectSchemas:
    """Converts Avro schemas, and remembers the named records: their second use is only the name."""

    named: dict[str, Json] = field(default_factory=dict)

    def node(self, schema: Any, namespace: str | None) -> Json:
        match schema:
            case str() if schema in _PRIMITIVES:
                return {"type": _PRIMITIVES[schema]}
            case str() if _full_name(schema, namespace) in self.named:
                return self.named[_full_name(schema, namespace)]
            case list():
                branches = [branch for branch in schema if branch != "null"]
                if len(branches) == 1:
                    return {**self.node(branches[0], namespace), "optional": True}
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                full_name = _full_name(name, schema.get("namespace", namespace))
                record = self._record(schema, full_name, fields)
                self.named[full_name] = record
                return record
            case {"type": "array", "items": items}:
                return self._described(schema, {"type": "array", "items": self.node(items, namespace)})
            case {"type": "map", "values": values}:
                keys = {"type": "string"}
                node = {"type": "map", "keys": keys, "values": self.node(values, namespace)}
                return self._described(schema, node)
            case {"type": dict() | list() as inner}:
                return self.node(inner, namespace)
            case {"type": str(name)} if name in _PRIMITIVES:
                return self._described(schema, {"type": _PRIMITIVES[name]})
            case {"type": str(name)}:
                return self.node(name, namespace)
        raise UnreadableAvro(
            what="An Avro schema has a type that Kafka Connect does not",
            found=json.dumps(schema)[:200],
            expected="a record, an array, a map, a primitive type, or a union of one of them with null",
        )

    def _record(self, schema: Json, full_name: str, fields: list[Json]) -> Json:
        namespace = full_name.rpartition(".")[0] or None
        nodes = [{**self.node(one["type"], namespace), "field": one["name"]} for one in fields]
        return {"type": "struct", "fields": nodes, "name": schema.get("connect.name", full_name)}

    def _described(self, schema: Json, node: Json) -> Json:
        name = schema.get("connect.name") or _LOGICAL_NAMES.get(schema.get("logicalType", ""))
        parameters = dict(schema.get("connect.parameters", {}))
        if schema.get("logicalType") == "decimal":
            parameters.setdefault("scale", str(schema.get("scale", 0)))
            key, value = WRITTEN_AS_NUMBER if _fits_a_decimal(schema) else WRITTEN_AS_BASE64
            parameters[key] = value
            if "connect.name" not in schema:
                parameters.setdefault("connect.decimal.precision", str(schema["precision"]))
        return {
            **node,
            "type": schema.get("connect.type", node["type"]),
            **({"name": name} if name else {}),
            **({"parameters": parameters} if parameters else {}),
        }


def _full_name(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
