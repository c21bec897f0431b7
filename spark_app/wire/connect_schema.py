"""The schema that Kafka Connect's JsonConverter writes into every record, as typed values, and which of its
fields are the source's columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tributary.contract.errors import TributaryError
from tributary.contract.source import Decimals


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


Shape = Literal["envelope", "unwrapped"]
"""A Debezium envelope, or the row at the top level with metadata in fields that begin with two underscores
(io.debezium.transforms.ExtractNewRecordState)."""

_WRITTEN_AS = "tributary.written.as"
WRITTEN_AS_NUMBER, WRITTEN_AS_BASE64 = (_WRITTEN_AS, "number"), (_WRITTEN_AS, "base64")
"""Parameters of a decimal: how its JSON is written, where that is certain."""

METADATA_FIELD = (
    "__(deleted|(source_|transaction_)?(op|version|connector|name|ts_ms|ts_us|ts_ns|snapshot|db|sequence|schema"
    "|table|txId|lsn|xmin|origin|origin_lsn|id|total_order|data_collection_order))"
)
"""A regular expression, of Python and Java, for the fields that `ExtractNewRecordState` adds to a row."""

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
SOURCE_TYPE, SOURCE_LENGTH, SOURCE_SCALE = (
    f"__debezium.source.column.{of}" for of in ("type", "length", "scale")
)
"""Parameters that tell a column's type in the source (Debezium's `column.propagate.source.type`)."""

_NUMBERS = frozenset({"scale", "connect.decimal.precision", SOURCE_LENGTH, SOURCE_SCALE})
"""Parameters that are whole numbers, as text."""


@dataclass(frozen=True)
class SchemaTexts:
    """The schemas of a record's key and value, as JsonConverter writes them; no `key` where it has none."""

    key: str | None
    value: str


@dataclass(frozen=True)
class SchemaVersion:
    """The columns of a record's key and row, as the events of one version of the source table carry them.

    `texts` are the schemas by which its events are known; None: events that carry none, whose columns the
    lake file names. `has_own_key`: whether the record's key holds the key, and not the row.
    """

    texts: SchemaTexts | None
    key: tuple[tuple[str, ConnectSchema], ...]
    row: tuple[tuple[str, ConnectSchema], ...]
    shape: Shape = "envelope"
    has_own_key: bool = True


def read_schema_version(
    texts: SchemaTexts, key_columns: tuple[str, ...] | None = None, decimals: Decimals = "number"
) -> SchemaVersion:
    """The version that the schemas of a key and of a value describe.

    `key_columns` are looked up in the row where the record has no key. Raises `UnreadableSchema` where a text
    is no Connect schema, or the value's is neither an envelope nor an unwrapped row.
    """
    value = _with_decimals(parse_schema(texts.value), decimals)
    shape, row = _row_of(value)
    if texts.key is not None:
        key = _with_decimals(parse_schema(texts.key), decimals).fields
        return SchemaVersion(texts, key, row, shape)
    fields = dict(row)
    if key_columns is None or not fields.keys() >= set(key_columns):
        return SchemaVersion(texts, (), row, shape)
    key = tuple((name, fields[name]) for name in key_columns)
    return SchemaVersion(texts, key, row, shape, has_own_key=False)


def _row_of(value: ConnectSchema) -> tuple[Shape, tuple[tuple[str, ConnectSchema], ...]]:
    after = value.field("after")
    if after is not None and after.type == "struct" and value.field("op") is not None:
        return "envelope", after.fields
    if value.field("__op") is not None or value.field("__deleted") is not None:
        row = tuple(field for field in value.fields if re.fullmatch(METADATA_FIELD, field[0]) is None)
        return "unwrapped", row
    raise UnreadableSchema(
        what="An event's value is neither a Debezium envelope nor an unwrapped row that tells its operation",
        found=f"fields {[name for name, _ in value.fields]}",
        expected="a struct with the fields before, after, source and op, or with __op or __deleted",
        remedy=(
            "Let ExtractNewRecordState add them: add.fields=op,source.sequence and "
            "delete.tombstone.handling.mode=rewrite."
        ),
    )


def _with_decimals(schema: ConnectSchema, decimals: Decimals) -> ConnectSchema:
    """The schema with the way in which its decimals are written, at any depth."""
    if decimals == "number":
        return schema
    is_uncertain = schema.name == _DECIMAL and schema.parameter(_WRITTEN_AS) is None
    parameters = (*schema.parameters, WRITTEN_AS_BASE64) if is_uncertain else schema.parameters
    return replace(
        schema,
        parameters=parameters,
        fields=tuple((name, _with_decimals(field, decimals)) for name, field in schema.fields),
        items=schema.items and _with_decimals(schema.items, decimals),
        map_values=schema.map_values and _with_decimals(schema.map_values, decimals),
    )


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
