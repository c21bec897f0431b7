"""One version of a source table: the columns that its events carry, and how to recognize these events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from spark_app.columns.table_columns import TableColumns
from spark_app.wire.connect_schema import ConnectSchema
from spark_app.wire.lake_types import conversion, is_of_unknown_type

Shape = Literal["envelope", "unwrapped"]
"""A Debezium envelope, or a row at the top level.

Metadata of such a row is in fields that begin with two underscores
(io.debezium.transforms.ExtractNewRecordState)."""


@dataclass(frozen=True)
class SchemaTexts:
    """The schemas of a record's key and value, as its wire form writes them.

    `key` is None if the key has no schema or the record has no key. The examples are the bytes of a record
    with these schemas, if one is known."""

    key: str | None
    value: str
    key_example: bytes | None = field(default=None, compare=False, repr=False)
    value_example: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class AvroReading:
    """A schema to read Avro with, and the type, as Spark's JSON, that reading gives."""

    schema: str
    type_json: str


@dataclass(frozen=True)
class SchemaVersion:
    """The columns of a record's key and row, in the events of one version of the source table.

    form         the name of the wire form (`spark_app.wire.forms`)
    texts        the schemas that the version's events carry, or their ids; None if they carry none, or any
    has_own_key  the record's key holds the key. If not, the row does.
    key_avro     how to read the key and the value, if they are Avro
    refused      why no event of this version can be read (`REASONS`); None if they can
    """

    form: str
    texts: SchemaTexts | None
    key: tuple[tuple[str, ConnectSchema], ...]
    row: tuple[tuple[str, ConnectSchema], ...]
    shape: Shape = "envelope"
    has_own_key: bool = True
    key_avro: AvroReading | None = None
    value_avro: AvroReading | None = None
    refused: str | None = None


def columns_of(version: SchemaVersion) -> TableColumns:
    """Return the columns that a table needs for the version. Key columns have the types that the key has.

    Raises `UnsupportedType`."""
    key = {name: conversion(name, schema).lake for name, schema in version.key}
    row = {name: conversion(name, schema).lake for name, schema in version.row} | key
    untyped = frozenset(name for name, schema in version.row if is_of_unknown_type(schema))
    return TableColumns(row=tuple(row.items()), key=tuple(key), untyped=untyped - key.keys())
