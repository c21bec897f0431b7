"""The schema that Kafka Connect's JsonConverter writes into every record, as typed values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract.errors import TributaryError


class UnreadableSchema(TributaryError):
    """A Connect schema that is not one."""


@dataclass(frozen=True)
class ConnectSchema:
    """One node of a Connect schema (org.apache.kafka.connect.json.JsonConverter#asJsonSchema).

    `name` is the semantic type (`io.debezium.time.Date`, …), not the name of a field.
    """

    type: str
    name: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    fields: tuple[tuple[str, ConnectSchema], ...] = ()
    items: ConnectSchema | None = None
    map_keys: ConnectSchema | None = None
    map_values: ConnectSchema | None = None

    def parameter(self, name: str) -> str | None:
        return dict(self.parameters).get(name)

    def field(self, name: str) -> ConnectSchema | None:
        return dict(self.fields).get(name)


@dataclass(frozen=True)
class SchemaTexts:
    """The schemas of a record's key and value, as JsonConverter writes them; no `key` where it has none."""

    key: str | None
    value: str


@dataclass(frozen=True)
class SchemaVersion:
    """The schemas of a record's key and row, as the events of one version of the source table carry them."""

    texts: SchemaTexts
    key: tuple[tuple[str, ConnectSchema], ...]
    row: tuple[tuple[str, ConnectSchema], ...]


def read_schema_version(texts: SchemaTexts) -> SchemaVersion:
    """The version that the schemas of a key and of a Debezium envelope describe.

    Raises `UnreadableSchema` where a text is no Connect schema, or the value's is not an envelope.
    """
    envelope = parse_schema(texts.value)
    row = envelope.field("after")
    if row is None or row.type != "struct":
        raise UnreadableSchema(
            what="An event's value is not a Debezium envelope",
            found=f"fields {[name for name, _ in envelope.fields]}",
            expected="a struct with the fields before, after, source and op",
            remedy="Remove transforms that unwrap events from the source connector.",
        )
    key = parse_schema(texts.key) if texts.key is not None else None
    return SchemaVersion(texts, key=() if key is None else key.fields, row=row.fields)


def parse_schema(text: str) -> ConnectSchema:
    """Raises `UnreadableSchema` where the text is no Connect schema."""
    try:
        return _node(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise UnreadableSchema(
            what="An event carries a schema that cannot be read",
            found=f"{text[:200]!r} ({cause})",
            expected="a schema as Kafka Connect's JsonConverter writes it",
        ) from cause


def _node(found: Mapping[str, Any]) -> ConnectSchema:
    return ConnectSchema(
        type=found["type"],
        name=found.get("name"),
        parameters=tuple(sorted((found.get("parameters") or {}).items())),
        fields=tuple((field["field"], _node(field)) for field in found.get("fields", ())),
        items=_node(found["items"]) if "items" in found else None,
        map_keys=_node(found["keys"]) if "keys" in found else None,
        map_values=_node(found["values"]) if "values" in found else None,
    )
