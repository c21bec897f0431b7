"""The payloads of one schema version: how they are parsed, and their values in the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from spark_app.columns.table_columns import TableColumns, takes_text
from spark_app.positions.source_log import SourceLog
from spark_app.steps.steps import steps
from spark_app.wire.connect_schema import ConnectSchema
from spark_app.wire.conversion import Conversion
from spark_app.wire.form import KEY_COLUMN, VersionReading
from spark_app.wire.forms import FORMS
from spark_app.wire.lake_types import conversion, conversion_of_text, is_of_unknown_type
from spark_app.wire.payload_shapes import SHAPES, PayloadShape, source_type
from spark_app.wire.record_key import key_type
from spark_app.wire.schema_version import SchemaVersion

_MOVES = ("moved_to", "moved_from")


@dataclass(frozen=True)
class VersionReader:
    """The columns in which one version's payloads are parsed, and their values in the lake.

    Parsing and converting are two projections, so that each payload is parsed once and not once per column.
    """

    reading: VersionReading
    columns: TableColumns
    log: SourceLog

    @staticmethod
    def of(number: int, version: SchemaVersion, columns: TableColumns, log: SourceLog) -> VersionReader:
        row, key = _wire_type(_conversions(version.row)), _wire_type(_conversions(version.key))
        key_in_row = () if version.has_own_key else tuple(name for name, _ in version.key)
        value = SHAPES[version.shape].wire(row, key_in_row, source_type(log))
        return VersionReader(VersionReading(number, version, value, key), columns, log)

    @property
    def version(self) -> SchemaVersion:
        return self.reading.version

    @property
    def is_of_version(self) -> Column:
        return self._value_read.isNotNull()

    @property
    def value(self) -> Column:
        return self._value_read["payload"]

    @property
    def key(self) -> Column:
        return self._key_read["payload"]

    @property
    def moved_to(self) -> Column:
        return F.col(self.reading.name("moved_to"))["payload"]

    @property
    def moved_from(self) -> Column:
        return F.col(self.reading.name("moved_from"))["payload"]

    def opened_moves(self) -> list[Column]:
        return [
            steps().open_payload(F.col(name), self.reading.key).alias(self._opened_name(name))
            for name in _MOVES
        ]

    def parsed_moves(self) -> list[Column]:
        key = self.reading.key
        read = {name: steps().read_payload(F.col(self._opened_name(name)), key) for name in _MOVES}
        return [column.alias(self.reading.name(name)) for name, column in read.items()]

    def _opened_name(self, name: str) -> str:
        return self.reading.name(f"opened_{name}")

    def has_key(self) -> Column:
        if not self.version.key:
            return F.lit(False)
        return self._key_read.isNotNull() if self.version.has_own_key else F.lit(True)

    def problem(self) -> Column:
        return self._value_read["problem"]

    def has_unnamed_column(self) -> Column:
        return self._value_read["has_unnamed"]

    def operation(self) -> Column:
        return self._shape.operation(self.value)

    def source(self) -> Column:
        return self._shape.source(self.value, self.log)

    def row(self) -> Column:
        found = self._shape.row(self.value)
        return F.when(
            found.isNotNull(), _in_lake_types(found, self._row_conversions(), self.columns.row_type)
        )

    def key_row(self) -> Column:
        if self.version.has_own_key:
            return self._key_in_lake_types(self.key)
        conversions, lake = self._key_conversions(), key_type(self.columns)
        values = {name: self._shape.key_value(self.value, name) for name in conversions}
        return _struct_in_lake_types(values, conversions, lake)

    def moved_row(self, parsed: Column) -> Column:
        """Return the moved key, but only if the payload gives the change's position.

        Without a position, the two halves of a key change cannot be matched."""
        return F.when(self._shape.tells_position(self.value, self.log), self._key_in_lake_types(parsed))

    def unavailable(self) -> Column:
        row = self._shape.row(self.value)
        stands_for_it = {
            name: c.is_placeholder(row[name])
            for name, c in self._row_conversions().items()
            if c.is_placeholder is not None
        }
        if not stands_for_it:
            return no_names()
        names = [F.when(condition, F.lit(name)) for name, condition in stands_for_it.items()]
        # Spark does not compile the code that picks the names, and few rows lack a value.
        lacks_one = any_of(list(stands_for_it.values()))
        return F.when(lacks_one, F.array_compact(F.array(*names))).otherwise(no_names())

    def value_is_corrupt(self) -> Column:
        return _has_failed(self._shape.row(self.value), self._row_conversions())

    def key_is_corrupt(self) -> Column:
        conversions = self._key_conversions()
        if not self.version.has_own_key:
            values = {name: self._shape.key_value(self.value, name) for name in conversions}
            return any_of([value.isNull() for value in values.values()]) | _have_failed(values, conversions)
        has_null = any_of([self.key[name].isNull() for name in conversions])
        return self._key_read["problem"].isNotNull() | has_null | _has_failed(self.key, conversions)

    @property
    def _shape(self) -> PayloadShape:
        return self.reading.shape

    def _key_in_lake_types(self, parsed: Column) -> Column:
        return F.when(
            parsed.isNotNull(), _in_lake_types(parsed, self._key_conversions(), key_type(self.columns))
        )

    @property
    def _value_read(self) -> Column:
        return FORMS[self.version.form].value(self.reading)

    @property
    def _key_read(self) -> Column:
        return F.col(self.reading.name(KEY_COLUMN))

    def _row_conversions(self) -> dict[str, Conversion]:
        lake = dict(self.columns.row)
        found = _conversions(self.version.row)
        for name, schema in self.version.row:
            data_type = lake.get(name)
            if is_of_unknown_type(schema) and data_type is not None and takes_text(data_type):
                found[name] = conversion_of_text(data_type)
        return found

    def _key_conversions(self) -> dict[str, Conversion]:
        return _conversions(self.version.key)


def _conversions(columns: Sequence[tuple[str, ConnectSchema]]) -> dict[str, Conversion]:
    return {name: conversion(name, schema) for name, schema in columns}


def no_names() -> Column:
    """Return an empty list of names."""
    return F.array().cast(ArrayType(StringType()))


def _wire_type(conversions: Mapping[str, Conversion]) -> StructType:
    return StructType([StructField(name, c.wire) for name, c in conversions.items()])


def _in_lake_types(parsed: Column, conversions: Mapping[str, Conversion], lake: StructType) -> Column:
    return _struct_in_lake_types({name: parsed[name] for name in conversions}, conversions, lake)


def _struct_in_lake_types(
    values: Mapping[str, Column], conversions: Mapping[str, Conversion], lake: StructType
) -> Column:
    return F.struct(
        *[
            (
                conversions[field.name].to_lake(values[field.name])
                if field.name in conversions
                else F.lit(None)
            )
            .cast(field.dataType)
            .alias(field.name)
            for field in lake.fields
        ]
    )


def _has_failed(parsed: Column, conversions: Mapping[str, Conversion]) -> Column:
    return _have_failed({name: parsed[name] for name in conversions}, conversions)


def _have_failed(values: Mapping[str, Column], conversions: Mapping[str, Conversion]) -> Column:
    failures = [c.has_failed(values[name]) for name, c in conversions.items() if c.has_failed is not None]
    return any_of([F.coalesce(failure, F.lit(False)) for failure in failures])


def any_of(conditions: Sequence[Column]) -> Column:
    """Return whether any condition holds, joined in halves.

    A chain of a thousand nested conditions would overflow the stack in Spark's recursion."""
    if len(conditions) < 2:
        return conditions[0] if conditions else F.lit(False)
    middle = len(conditions) // 2
    return any_of(conditions[:middle]) | any_of(conditions[middle:])
