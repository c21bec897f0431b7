"""The events of the benchmarks in Avro, framed as Confluent's and Apicurio's converters frame them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType

from bench.events import KEY_SCHEMA, VALUE_SCHEMA
from spark_app.jvm.avro_type import type_of_avro
from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.registry import SchemaUnknown

_KEY, _VALUE = 1, 2
_PRIMITIVES = {"int16": "int", "int32": "int", "int64": "long"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


class SchemasInMemory:
    """A registry of the two schemas. Each benchmark asks it a few times only."""

    def schema(self, schema_id: SchemaId) -> str:
        found = _SCHEMAS.get(schema_id.number)
        if found is None:
            raise SchemaUnknown(str(schema_id))
        return found


def with_avro(envelopes: DataFrame) -> DataFrame:
    """Return the same events, `offset`, `key` and `value`, in Avro."""
    return envelopes.select(
        "offset", _framed(_KEY, "key").alias("key"), _framed(_VALUE, "value").alias("value")
    )


def _framed(number: int, payload: str) -> Column:
    schema = _SCHEMAS[number]
    found = F.from_json(F.col(payload), StructType.fromJson(json.loads(type_of_avro(schema))))
    return F.concat(F.lit(b"\0" + number.to_bytes(4)), to_avro(found, schema))


def _avro(connect: Mapping[str, Any], named: set[str]) -> Any:
    """Return the Avro schema to which AvroData converts a Connect schema. `named` are the records so far."""
    found: Any = {"type": _PRIMITIVES.get(connect["type"], connect["type"])}
    if connect["type"] == "struct":
        found = _record(connect, named)
    if isinstance(found, dict):
        found |= {
            f"connect.{key}": connect[key] for key in ("name", "version", "parameters") if key in connect
        }
        if connect.get("name") == _DECIMAL:
            parameters = connect["parameters"]
            precision, scale = parameters["connect.decimal.precision"], parameters["scale"]
            found |= {"logicalType": "decimal", "precision": int(precision), "scale": int(scale)}
        if connect["type"] == "int16":
            found["connect.type"] = "int16"
    return ["null", found] if connect.get("optional") else found


def _record(connect: Mapping[str, Any], named: set[str]) -> Any:
    name: str = connect["name"]
    if name in named:
        return name
    named.add(name)
    fields = [{"name": field["field"], "type": _avro(field, named)} for field in connect["fields"]]
    namespace, _, simple = name.rpartition(".")
    return {"type": "record", "name": simple, "namespace": namespace, "fields": fields}


_SCHEMAS = {
    number: json.dumps(_avro(json.loads(text), set()))
    for number, text in ((_KEY, KEY_SCHEMA), (_VALUE, VALUE_SCHEMA))
}
