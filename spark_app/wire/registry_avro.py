"""Avro whose schemas are in a registry: a few bytes that name the schema, and a record.

The converters of AWS Glue, Confluent and Apicurio write it (`spark_app.schema_registry.framing`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.schema_registry.framing import (
    GLUE_VERSION,
    INT32_BYTES,
    INT32_START,
    INT64_BYTES,
    INT64_START,
    NO_INT32,
    PLAIN,
    UUID_BYTES,
    UUID_START,
    ZERO,
    ZLIB,
    Framing,
    SchemaId,
)
from spark_app.schema_registry.registry import OtherFraming, SchemaRegistry, SchemaUnknown
from spark_app.steps.steps import steps
from spark_app.wire.avro_record import avro_reading, is_damaged, read_avro, record_as_wire
from spark_app.wire.avro_schema import AvroSchema, UnreadableAvro, read_avro_schema
from spark_app.wire.connect_schema import (
    SOURCE_NAME,
    ConnectSchema,
    UnreadableSchema,
    parse_schema,
    with_decimals,
)
from spark_app.wire.form import KEY_COLUMN, VersionReading
from spark_app.wire.json_with_schemas import row_of, schema_version
from spark_app.wire.reasons import (
    MISMATCH,
    NO_REGISTRY,
    NOT_AVRO,
    OTHER_REGISTRY,
    UNKNOWN_SCHEMA,
    UNKNOWN_SCHEMA_ID,
)
from spark_app.wire.schema_version import AvroReading, SchemaTexts, SchemaVersion
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

NOT_LOOKED_FOR = SchemaVersion("registry_avro", None, key=(), row=(), refused=NO_REGISTRY)
"""Stands for all versions in a lake without a registry."""

_VALUE_RECORD, _KEY_RECORD, _VALUE = "avro_value", "avro_key", "value"
_BETWEEN_IDS = " "
_BODY_STARTS: Mapping[Framing, int] = {"int32": INT32_START, "int64": INT64_START, "uuid": UUID_START}


class RegistryAvro:
    """Reads events whose value names its schema. If the key does not, the key is taken from the row."""

    name: ClassVar = "registry_avro"
    needs_registry: ClassVar = True

    def new_schema(self, known: Sequence[SchemaTexts]) -> Column:
        value, key = schema_id(F.col("value")), schema_id(F.col("key"))
        is_known = _any([(value == texts.value) & key.eqNullSafe(F.lit(texts.key)) for texts in known])
        is_new = value.isNotNull() & ~F.coalesce(is_known, F.lit(False))
        return F.when(is_new, F.struct(key.alias("key"), value.alias("value")))

    def learned(
        self, texts: SchemaTexts, policy: TablePolicy, written: Events, registry: SchemaRegistry | None
    ) -> SchemaVersion:
        """Return the version that the schemas with these ids describe.

        Its events are refused if there are no such schemas, or if they are of something else. Raises
        `RegistryAway` or `RegistryRefused`."""
        assert registry is not None, "without a registry, no schema of this form is looked for"
        try:
            value = read_avro_schema(registry.schema(SchemaId.parse(texts.value)))
            key = None if texts.key is None else read_avro_schema(registry.schema(SchemaId.parse(texts.key)))
            return self._version(texts, value, key, policy, written)
        except OtherFraming:
            return self._refused(texts, OTHER_REGISTRY)
        except SchemaUnknown:
            return self._refused(texts, UNKNOWN_SCHEMA_ID)
        except (UnreadableAvro, UnreadableSchema):
            return self._refused(texts, UNKNOWN_SCHEMA)

    def opened(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        found = {}
        for reading in _readable(readings):
            version = reading.version
            is_of_version = _is_of(version)
            assert version.value_avro is not None, "a readable version of Avro has its schema"
            value = _read(F.col("value"), _texts(version).value, version.value_avro)
            # The flag tells a record that zlib could not read from an event of another version.
            found[reading.name(_VALUE_RECORD)] = F.when(is_of_version, F.struct(value.alias("record")))
            key_id = _texts(version).key
            if version.has_own_key and key_id is not None and version.key_avro is not None:
                key = _read(F.col("key"), key_id, version.key_avro)
                found[reading.name(_KEY_RECORD)] = F.when(is_of_version, F.struct(key.alias("record")))
        return found

    def parsed(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        found = {}
        for reading in _readable(readings):
            version = reading.version
            assert version.value_avro is not None, "a readable version of Avro has its schema"
            opened = F.col(reading.name(_VALUE_RECORD))
            read = record_as_wire(opened["record"], version.value_avro, reading.value)
            is_bad = is_damaged(opened["record"], version.value_avro)
            found[reading.name(_VALUE)] = _found(opened, read.value, is_bad, read.has_failed)
            if version.has_own_key and version.key_avro is not None:
                opened_key = F.col(reading.name(_KEY_RECORD))
                key = record_as_wire(opened_key["record"], version.key_avro, reading.key)
                is_bad_key = is_damaged(opened_key["record"], version.key_avro)
                found[reading.name(KEY_COLUMN)] = _found(opened_key, key.value, is_bad_key, key.has_failed)
        return found

    def value(self, reading: VersionReading) -> Column:
        return F.col(reading.name(_VALUE))

    def reason(self, readings: Sequence[VersionReading]) -> Column:
        refused: dict[str, list[str]] = defaultdict(list)
        of_all = UNKNOWN_SCHEMA
        for version in (reading.version for reading in readings):
            if version.refused is not None and version.texts is None:
                of_all = version.refused
            elif version.refused is not None:
                refused[version.refused].append(_ids(version))
        value, key = schema_id(F.col("value")), schema_id(F.col("key"))
        found = F.concat_ws(_BETWEEN_IDS, value, key)
        reasons = [F.when(found.isin(ids), F.lit(reason)) for reason, ids in refused.items()]
        return F.when(value.isNotNull(), F.coalesce(*reasons, F.lit(of_all)))

    def _refused(self, texts: SchemaTexts, reason: str) -> SchemaVersion:
        return SchemaVersion(self.name, texts, key=(), row=(), refused=reason)

    def _version(
        self,
        texts: SchemaTexts,
        value: AvroSchema,
        key: AvroSchema | None,
        policy: TablePolicy,
        written: Events,
    ) -> SchemaVersion:
        shape, row = row_of(_connect(value, written))
        if written.topic_prefix is None:
            # Our own connector replaces characters that Avro does not allow in names. The lake does not allow
            # them either, and says so about the column's own name.
            row = tuple((column.parameter(SOURCE_NAME) or field, column) for field, column in row)
        own_key = () if key is None else _connect(key, written).fields
        return replace(
            schema_version(self.name, texts, shape, row, own_key, policy.key),
            key_avro=None if key is None else avro_reading(key),
            value_avro=avro_reading(value),
        )


def _connect(schema: AvroSchema, written: Events) -> ConnectSchema:
    # The schema itself says how its decimals are written.
    return with_decimals(parse_schema(schema.connect), written.decimals)


def schema_id(framed: Column) -> Column:
    """Return the id that bytes begin with, as `SchemaId` writes it; null if they begin with none."""
    first, second = framed.substr(1, 1), framed.substr(2, 1)
    is_glue = (first == F.lit(GLUE_VERSION)) & second.isin(PLAIN, ZLIB) & (F.length(framed) > UUID_START)
    is_zero = first == F.lit(ZERO)
    is_int64 = framed.substr(2, INT32_BYTES) == F.lit(NO_INT32)
    return (
        F.when(is_glue, _digits("uuid", framed.substr(3, UUID_BYTES)))
        .when(
            is_zero & is_int64 & (F.length(framed) > INT64_START),
            _digits("int64", framed.substr(2, INT64_BYTES)),
        )
        .when(
            is_zero & ~is_int64 & (F.length(framed) > INT32_START),
            _digits("int32", framed.substr(2, INT32_BYTES)),
        )
    )


def record_json(framed: Column, text: str, reading: AvroReading) -> Column:
    """Return as JSON the record of bytes that name the schema with this id; null for all other bytes."""
    return F.when(_names_schema(framed, text), F.to_json(_read(framed, text, reading)))


def _digits(framing: Framing, written: Column) -> Column:
    return F.concat(F.lit(f"{framing}:"), F.lower(F.hex(written)))


def _is_of(version: SchemaVersion) -> Column:
    """Return whether an event names the version's schemas."""
    texts = _texts(version)
    has_value = _names_schema(F.col("value"), texts.value)
    if texts.key is None:
        return has_value & schema_id(F.col("key")).isNull()
    return has_value & _names_schema(F.col("key"), texts.key)


def _names_schema(framed: Column, text: str) -> Column:
    found = SchemaId.parse(text)
    begins_so = framed.substr(1, _BODY_STARTS[found.framing]).isin(*found.starts)
    has_record = F.length(framed) > _BODY_STARTS[found.framing]
    return F.coalesce(begins_so & has_record, F.lit(False))


def _read(framed: Column, text: str, reading: AvroReading) -> Column:
    framing = SchemaId.parse(text).framing
    body = framed.substr(F.lit(_BODY_STARTS[framing] + 1), F.length(framed))
    if framing == "uuid":
        body = F.when(framed.substr(2, 1) == F.lit(ZLIB), steps().inflated(body)).otherwise(body)
    return read_avro(body, reading)


def _found(opened: Column, payload: Column, is_bad: Column, has_failed: Column | None) -> Column:
    """Return the payload in the form of `read_payload`."""
    problem = F.when(F.coalesce(is_bad, F.lit(True)), NOT_AVRO)
    if has_failed is not None:
        problem = problem.when(has_failed, MISMATCH)
    found = F.struct(payload.alias("payload"), problem.alias("problem"), F.lit(False).alias("has_unnamed"))
    return F.when(opened.isNotNull(), found)


def _readable(readings: Sequence[VersionReading]) -> list[VersionReading]:
    return [reading for reading in readings if reading.version.refused is None]


def _ids(version: SchemaVersion) -> str:
    texts = _texts(version)
    return _BETWEEN_IDS.join(filter(None, (texts.value, texts.key)))


def _texts(version: SchemaVersion) -> SchemaTexts:
    assert version.texts is not None, "a version of Avro is known by the ids of its schemas"
    return version.texts


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions, F.lit(False))
