"""Connect's schemas as typed values. JsonConverter writes such a schema into every record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tributary.contract.errors import TributaryError
from tributary.contract.source import Decimals


class UnreadableSchema(TributaryError):
    """A text is not a valid Connect schema."""


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


_WRITTEN_AS = "tributary.written.as"
WRITTEN_AS_NUMBER, WRITTEN_AS_BASE64 = (_WRITTEN_AS, "number"), (_WRITTEN_AS, "base64")
"""Parameters of a decimal that say how its JSON is written, where that is certain."""

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
SOURCE_NAME, SOURCE_TYPE, SOURCE_LENGTH, SOURCE_SCALE = (
    f"__debezium.source.column.{of}" for of in ("name", "type", "length", "scale")
)
"""Parameters with a column's name and type in the source (Debezium's `column.propagate.source.type`)."""

_NUMBERS = frozenset({"scale", "connect.decimal.precision", SOURCE_LENGTH, SOURCE_SCALE})
"""Parameters that are whole numbers, written as text."""


def with_decimals(schema: ConnectSchema, decimals: Decimals) -> ConnectSchema:
    """Return the schema with the way in which its decimals are written, at any depth."""
    if decimals == "number":
        return schema
    is_uncertain = schema.name == _DECIMAL and schema.parameter(_WRITTEN_AS) is None
    parameters = (*schema.parameters, WRITTEN_AS_BASE64) if is_uncertain else schema.parameters
    return replace(
        schema,
        parameters=parameters,
        fields=tuple((name, with_decimals(field, decimals)) for name, field in schema.fields),
        items=schema.items and with_decimals(schema.items, decimals),
        map_values=schema.map_values and with_decimals(schema.map_values, decimals),
    )


def parse_schema(text: str) -> ConnectSchema:
    """Return the schema that a text describes. Raises `UnreadableSchema` if it is no Connect schema."""
    try:
        return _node(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise UnreadableSchema(
            what="An event carries a schema that cannot be read",
            found=f"{text[:200]!r} ({cause})",
            expected="a schema as Kafka Connect's JsonConverter writes it",
        ) from cause


def _node(found: Mapping[str, Any]) -> ConnectSchema:
    node = ConnectSchema(
        type=_text(found["type"]),
        name=None if found.get("name") is None else _text(found["name"]),
        parameters=tuple(sorted((_text(k), _text(v)) for k, v in (found.get("parameters") or {}).items())),
        fields=tuple((_text(field["field"]), _node(field)) for field in found.get("fields", ())),
        items=_node(found["items"]) if "items" in found else None,
        map_keys=_node(found["keys"]) if "keys" in found else None,
        map_values=_node(found["values"]) if "values" in found else None,
    )
    numbers = {name: int(value) for name, value in node.parameters if name in _NUMBERS}
    if node.name == _DECIMAL and numbers.get("connect.decimal.precision", 1) < 1:
        raise ValueError("a decimal without a digit")
    return node


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{found!r} where a text belongs")
    return found
