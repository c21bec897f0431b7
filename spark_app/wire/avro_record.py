"""Avro records in Spark: read one from its bytes, and give its values the types that JSON's have.

All that follows is then the same for Avro and for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_app.jvm.avro_type import type_of_avro
from spark_app.steps.steps import steps
from spark_app.wire.avro_schema import AvroSchema, UnreadableAvro
from spark_app.wire.schema_version import AvroReading


def avro_reading(schema: AvroSchema) -> AvroReading:
    """Return how Spark reads a record. Raises `UnreadableAvro` if it cannot."""
    try:
        return AvroReading(schema.reader, type_of_avro(schema.reader))
    except ValueError as error:
        raise UnreadableAvro(what="Spark cannot read an Avro schema", found=str(error)[:300]) from error


def read_avro(avro: Column, reading: AvroReading) -> Column:
    """Return the record. All its fields are null if the bytes are not Avro of the schema."""
    return from_avro(steps().limited_avro(avro), reading.schema, {"mode": "PERMISSIVE"})


@dataclass(frozen=True)
class AsWire:
    """A value as `wire`, and whether it exists but has no such value; None if it always has."""

    value: Column
    has_failed: Column | None = None


def is_damaged(record: Column, reading: AvroReading) -> Column:
    """Return whether a record of `read_avro` could not be read."""
    fields = _type(reading).fields
    # A record that cannot be read has no values at all. One field that every record has is enough to tell.
    told = next(([field] for field in fields if not field.nullable), fields)
    found = [record[field.name].isNotNull() for field in told]
    return ~reduce(lambda one, other: one | other, found, F.lit(False))


def record_as_wire(record: Column, reading: AvroReading, wire: StructType) -> AsWire:
    """Return a record of `read_avro` as the type that it has in JSON."""
    return _struct(record, _type(reading), wire)


def _type(reading: AvroReading) -> StructType:
    return StructType.fromJson(json.loads(reading.type_json))


def _struct(value: Column, found: StructType, wire: StructType) -> AsWire:
    fields = {field.name: _field(value, found, field) for field in wire.fields}
    made = F.struct(*[each.value.alias(name) for name, each in fields.items()])
    return AsWire(F.when(value.isNotNull(), made), _any_failed(fields.values()))


def _field(value: Column, found: StructType, field: StructField) -> AsWire:
    if field.name not in found.names:
        return AsWire(F.lit(None).cast(field.dataType))
    return _as_wire(value[field.name], found[field.name].dataType, field.dataType)


def _as_wire(value: Column, found: DataType, wire: DataType) -> AsWire:
    match found, wire:
        case StructType(), StructType():
            return _struct(value, found, wire)
        case ArrayType(), ArrayType():
            return _array(value, found.elementType, wire.elementType)
        case MapType(), MapType():
            return _map(value, found.valueType, wire.valueType)
        case BinaryType(), StringType():
            # Spark's base64 breaks lines, as MIME does.
            return AsWire(F.translate(F.base64(value), "\r\n", ""))
        case _ if found == wire:
            return AsWire(value)
        case _ if isinstance(found, _Nested) or isinstance(wire, _Nested):
            return AsWire(F.lit(None).cast(wire), value.isNotNull())
        case _:
            cast = value.cast(wire)
            return AsWire(cast, value.isNotNull() & cast.isNull())


_Nested = StructType | ArrayType | MapType


def _array(value: Column, found: DataType, wire: DataType) -> AsWire:
    if found == wire:
        return AsWire(value)
    can_fail = _as_wire(F.lit(None).cast(found), found, wire).has_failed is not None

    def has_failed(item: Column) -> Column:
        return F.coalesce(_as_wire(item, found, wire).has_failed, F.lit(False))  # type: ignore[arg-type]

    made = F.transform(value, lambda item: _as_wire(item, found, wire).value)
    return AsWire(made, F.exists(value, has_failed) if can_fail else None)


def _map(value: Column, found: DataType, wire: DataType) -> AsWire:
    if found == wire:
        return AsWire(value)
    return AsWire(F.transform_values(value, lambda _, item: _as_wire(item, found, wire).value))


def _any_failed(fields: Iterable[AsWire]) -> Column | None:
    failures = [F.coalesce(each.has_failed, F.lit(False)) for each in fields if each.has_failed is not None]
    return reduce(lambda one, other: one | other, failures) if failures else None
