"""The payload of an event outside Spark: JSON, or Avro whose schema is in the lake's registry."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from spark_app.schema_registry.framing import SchemaId, unframed
from spark_app.schema_registry.registry import RegistryAway, SchemaRegistry, SchemaUnknown
from tributary.contract.errors import TributaryError


class SchemasMissing(TributaryError):
    """Events are Avro, and their schemas cannot be read."""


@dataclass
class EventPayloads:
    """Reads payloads. `registry` has the schemas of Avro events; None: the lake has no registry."""

    registry: SchemaRegistry | None = None
    _schemas: dict[SchemaId, Any] = field(default_factory=dict, repr=False)

    def read(self, found: bytes | None) -> Any:
        """Return the payload as JSON holds it; None if there is none, or if the bytes cannot be read.

        Raises SchemasMissing if the registry is missing or does not answer, and RegistryRefused."""
        framed = None if found is None else unframed(found)
        if framed is None:
            return _json_payload(found)
        schema = self._schema(framed.schema)
        return None if schema is None or framed.avro is None else _avro_payload(framed.avro, schema)

    def _schema(self, schema_id: SchemaId) -> Any:
        if self.registry is None:
            raise SchemasMissing(
                "The events are Avro whose schemas are in a registry, and the lake file names none",
                found=str(schema_id),
                expected="a section [registry]",
            )
        if schema_id not in self._schemas:
            try:
                text = self.registry.schema(schema_id)
            except SchemaUnknown:
                return None
            except RegistryAway as error:
                raise SchemasMissing(
                    "The events are Avro, and the registry with their schemas does not answer",
                    found=str(error),
                    remedy="Start the registry, and try again.",
                ) from error
            self._schemas[schema_id] = _parsed(text)
        return self._schemas[schema_id]


def _json_payload(found: bytes | None) -> Any:
    try:
        document = json.loads(found or b"null")
    except ValueError:
        return None
    return document["payload"] if isinstance(document, dict) and "payload" in document else document


def _parsed(text: str) -> Any:
    """Return the schema as fastavro has it; None if it is none of Avro."""
    # Loaded here, because only lakes with Avro need it.
    import fastavro
    from fastavro.schema import SchemaParseException

    try:
        return fastavro.parse_schema(_as_sent(json.loads(text)))
    except (ValueError, SchemaParseException):
        return None


def _as_sent(schema: Any) -> Any:
    """Return the schema without the logical types that fastavro would convert, except decimals."""
    match schema:
        case dict():
            dropped = () if schema.get("logicalType") == "decimal" else ("logicalType",)
            dropped = (*dropped, "default")
            return {name: _as_sent(value) for name, value in schema.items() if name not in dropped}
        case list():
            return [_as_sent(branch) for branch in schema]
        case _:
            return schema


def _avro_payload(avro: bytes, schema: Any) -> Any:
    import fastavro

    try:
        return _as_json(fastavro.schemaless_reader(io.BytesIO(avro), schema, None))
    except (ValueError, EOFError, IndexError, OverflowError, StopIteration, MemoryError):
        return None


def _as_json(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value)
        case dict():
            return {name: _as_json(item) for name, item in value.items()}
        case list():
            return [_as_json(item) for item in value]
        case _:
            return value
