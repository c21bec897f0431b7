"""JSON with schemas: `{"schema":…,"payload":…}`, as Kafka Connect's JsonConverter writes it by default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.steps.steps import steps
from spark_app.wire.connect_schema import ConnectSchema, UnreadableSchema, parse_schema, with_decimals
from spark_app.wire.form import KEY_COLUMN, VersionReading
from spark_app.wire.json_document import KEY, VALUE, KnownSchemas, has_bare_key
from spark_app.wire.payload_shapes import METADATA_FIELD
from spark_app.wire.reasons import MISMATCH, NO_SCHEMA, UNKNOWN_SCHEMA
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion, Shape
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Decimals, Events

Columns = tuple[tuple[str, ConnectSchema], ...]

_VALUE_COLUMN, _OPENED_VALUE, _OPENED_KEY = "value", "opened_value", "opened_key"


class JsonWithSchemas:
    """Reads events whose value carries a schema. If the key carries none, the key is taken from the row."""

    name: ClassVar = "json_with_schemas"
    needs_registry: ClassVar = False

    def new_schema(self, known: Sequence[SchemaTexts]) -> Column:
        schemas = KnownSchemas.of(known)
        is_known = _any(schemas.has_value_schema(texts) & _has_such_a_key(schemas, texts) for texts in known)
        value, key = F.col(VALUE)["schema"], F.col(KEY)["schema"]
        is_readable = value.isNotNull() & (F.col("key").isNull() | key.isNotNull() | has_bare_key())
        return F.when(is_readable & ~is_known, F.struct(key.alias("key"), value.alias("value")))

    def learned(
        self, texts: SchemaTexts, policy: TablePolicy, written: Events, _registry: SchemaRegistry | None, /
    ) -> SchemaVersion:
        return read_schema_version(texts, policy.key, written.decimals)

    def opened(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        found = {}
        for reading in readings:
            is_of_version = _carries(readings, reading)
            payload = F.when(is_of_version, F.col(VALUE)["payload"])
            found[reading.name(_OPENED_VALUE)] = steps().open_payload(payload, reading.value)
            if reading.version.has_own_key:
                key = F.when(is_of_version, F.col(KEY)["payload"])
                found[reading.name(_OPENED_KEY)] = steps().open_payload(key, reading.key)
        return found

    def parsed(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        found = {}
        for reading in readings:
            opened = F.col(reading.name(_OPENED_VALUE))
            found[reading.name(_VALUE_COLUMN)] = steps().read_payload(opened, reading.value)
            if reading.version.has_own_key:
                opened_key = F.col(reading.name(_OPENED_KEY))
                found[reading.name(KEY_COLUMN)] = steps().read_payload(opened_key, reading.key)
        return found

    def value(self, reading: VersionReading) -> Column:
        return F.col(reading.name(_VALUE_COLUMN))

    def reason(self, readings: Sequence[VersionReading]) -> Column:
        schemas, key = _schemas(readings), F.col("key")
        # An event with a version gets here only if its payload is null.
        is_of_a_version = _any(_carries(readings, reading) for reading in readings)
        is_known_without_key = _any(
            schemas.has_value_schema(_texts(reading)) for reading in readings if _texts(reading).key is None
        )
        is_useless_key = has_bare_key() & (is_known_without_key | F.lit(not readings))
        is_no_document = key.isNotNull() & F.col(KEY).isNull()
        return F.when(
            F.col(VALUE)["schema"].isNotNull(),
            F.when(is_of_a_version, MISMATCH)
            .when(is_no_document | is_useless_key, NO_SCHEMA)
            .otherwise(UNKNOWN_SCHEMA),
        )


def read_schema_version(
    texts: SchemaTexts, key_columns: tuple[str, ...] | None = None, decimals: Decimals = "number"
) -> SchemaVersion:
    """Return the version that the schemas of a key and a value describe.

    `key_columns` are looked up in the row if the key has no schema, or a schema without fields. Raises
    `UnreadableSchema` if a text is no Connect schema, or if the value's schema is neither an envelope nor an
    unwrapped row."""
    value = with_decimals(parse_schema(texts.value), decimals)
    own_key = () if texts.key is None else with_decimals(parse_schema(texts.key), decimals).fields
    shape, row = row_of(value)
    return schema_version(JsonWithSchemas.name, texts, shape, row, own_key, key_columns)


def schema_version(
    form: str,
    texts: SchemaTexts,
    shape: Shape,
    row: Columns,
    own_key: Columns,
    key_columns: tuple[str, ...] | None,
) -> SchemaVersion:
    """Return the version with this row, and with the key of the record or, if it has none, of the row."""
    if own_key:
        return SchemaVersion(form, texts, own_key, row, shape)
    fields = dict(row)
    if key_columns is None or not fields.keys() >= set(key_columns):
        return SchemaVersion(form, texts, (), row, shape)
    key = tuple((name, fields[name]) for name in key_columns)
    return SchemaVersion(form, texts, key, row, shape, has_own_key=False)


def row_of(value: ConnectSchema) -> tuple[Shape, Columns]:
    """Return the shape of a value with this schema, and the columns of its row.

    Raises `UnreadableSchema` if it is neither an envelope nor an unwrapped row."""
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


def _carries(readings: Sequence[VersionReading], reading: VersionReading) -> Column:
    schemas, texts = _schemas(readings), _texts(reading)
    has_key = schemas.has_key_schema(texts)
    if not reading.version.has_own_key:
        has_key = has_key | has_bare_key()
    return schemas.has_value_schema(texts) & has_key


def _has_such_a_key(schemas: KnownSchemas, texts: SchemaTexts) -> Column:
    has_key = schemas.has_key_schema(texts)
    return has_key | has_bare_key() if texts.key is None else has_key


def _schemas(readings: Sequence[VersionReading]) -> KnownSchemas:
    return KnownSchemas.of(_texts(reading) for reading in readings)


def _texts(reading: VersionReading) -> SchemaTexts:
    texts = reading.version.texts
    assert texts is not None, "a version of JSON with schemas is known by its schemas"
    return texts


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions, F.lit(False))
