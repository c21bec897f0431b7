"""Decode: turn raw events of any wire form into changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.table_columns import TableColumns, takes_text
from spark_app.positions.source_log import SourceLog
from spark_app.sources.event import EVENT
from spark_app.steps.steps import Name, Projections, steps
from spark_app.wire.connect_schema import ConnectSchema
from spark_app.wire.form import KEY_COLUMN, VersionReading
from spark_app.wire.forms import FORMS, documents, opened, parsed, schemas_of, unread_reason, with_documents
from spark_app.wire.json_document import KEY, VALUE
from spark_app.wire.lake_types import Conversion, conversion, conversion_of_text, is_of_unknown_type
from spark_app.wire.payload_shapes import (
    SHAPES,
    PayloadShape,
    opened_for_operation,
    operation_in,
    source_type,
)
from spark_app.wire.reasons import (
    MISMATCH,
    MISSING_KEY,
    MISSING_ROW,
    REASONS,
    UNKNOWN_OPERATION,
    UNKNOWN_SCHEMA,
    UNNAMED_COLUMN,
)
from spark_app.wire.schema_version import SchemaVersion

CREATE, UPDATE, DELETE, READ, TRUNCATE = "c", "u", "d", "r", "t"


def change_type(columns: TableColumns) -> StructType:
    """Return the schema of a change.

    key           the record key: a JSON object, without a comma, for each key column
    moved_from    the row's key before its primary key changed
    moved_to      the row's new key, on the delete of its old key
    position      its place in the stream (`SourceLog.position`); empty if the change has none
    log_position  its place in the log (`SourceLog.log_position`); empty if the change has none
    row           the values after the change; for a delete, only the key's
    unavailable   the columns of `row` whose values Debezium did not know (unchanged TOAST)
    reason        why the event could not be decoded. Then only topic, partition and offset are certain.
    """
    return StructType(
        [
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("op", StringType()),
            StructField("key", StringType()),
            StructField("moved_to", StringType()),
            StructField("moved_from", StringType()),
            StructField("source_ts", TimestampType()),
            StructField("position", BinaryType()),
            StructField("log_position", BinaryType()),
            StructField("snapshot", StringType()),
            StructField("row", columns.row_type),
            StructField("unavailable", ArrayType(StringType())),
            StructField("reason", StringType()),
        ]
    )


_POSITION = ("topic", "partition", "offset")
_MOVES = ("moved_to", "moved_from")
_NEEDS_NO_ESCAPE = re.compile(r"\w+", re.ASCII)
_KEY_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def decode(
    events: DataFrame, versions: tuple[SchemaVersion, ...], columns: TableColumns, log: SourceLog
) -> DataFrame:
    """Decode events (`EVENT`) to changes (`change_type(columns)`). Tombstones are left out.

    `versions` are all versions that may occur. An event of any other version gets the reason
    `unknown_schema`, and an event of a refused version has that version's reason. `log` belongs to the engine
    that the events came from."""
    return _projections(versions, columns, log, steps().name).apply(events)


def undecodable(events: DataFrame, refused: tuple[SchemaVersion, ...] = ()) -> DataFrame:
    """Return why events cannot be decoded while no table's key is known.

    Columns: `topic, partition, offset, reason`. Tombstones are left out. Truncates have no reason, because
    there is no table yet that they could empty. `refused` are the versions whose events cannot be read."""
    taken_apart = with_documents(events.where(F.col("value").isNotNull()), {})
    # Selects, and no filter: Spark would move it before them, and repeat in it all that it needs.
    opened = taken_apart.select("*", opened_for_operation(F.col(VALUE)["payload"]).alias("opened"))
    found = opened.select(
        *_POSITION,
        "key",
        unread_reason(_refused(refused)).alias("why"),
        operation_in(F.col("opened")).alias("op"),
    )
    is_truncate = F.coalesce(F.col("op") == TRUNCATE, F.lit(False))
    is_without_key = (F.col("why") == UNKNOWN_SCHEMA) & F.col("key").isNull()
    reason = F.when(~is_truncate, F.when(is_without_key, MISSING_KEY).otherwise(F.col("why")))
    return found.select(*_POSITION, reason.alias("reason"))


def undecoded(changes: DataFrame) -> DataFrame:
    """Return the changes that have a `reason`, as `topic, partition, offset, reason, message`."""
    texts = F.create_map(*[F.lit(text) for item in REASONS.items() for text in item])
    bad = changes.where(F.col("reason").isNotNull())
    return bad.select(*_POSITION, "reason", texts[F.col("reason")].alias("message"))


def unfilled(changes: DataFrame) -> DataFrame:
    """Return which columns have no value in rows with unfit values: `topic, partition, offset, unfilled`.

    A column of unchanged TOAST is not among them. A delete has no row."""
    row = F.col("row")
    names = changes.select("row.*").columns
    empty = F.array_compact(F.array(*[F.when(row[name].isNull(), F.lit(name)) for name in names]))
    is_unfit = (F.col("reason") == MISMATCH) & (F.col("op") != DELETE) & row.isNotNull()
    return changes.where(is_unfit).select(
        *_POSITION, F.array_except(empty, F.col("unavailable")).alias("unfilled")
    )


@lru_cache(maxsize=256)
def _projections(
    versions: tuple[SchemaVersion, ...], columns: TableColumns, log: SourceLog, _of: Name, /
) -> Projections:
    """Return the projections that decode events of these versions.

    They are cached: building and analyzing hundreds of expressions takes longer than reading hundreds of
    events."""
    readable = [version for version in versions if version.refused is None]
    readers = [_VersionReader.of(number, version, columns, log) for number, version in enumerate(readable)]
    refused = _refused(versions)
    taken_apart = (*map(F.col, EVENT.fieldNames()), *documents(schemas_of(readable)))
    read = _read(readers, refused, columns, source_type(log))
    selects = (taken_apart, _opened(readers), _parsed(readers), read, _change(columns, log))
    return steps().projections(EVENT, "value", selects)


def _refused(versions: Sequence[SchemaVersion]) -> list[VersionReading]:
    nothing = StructType([])
    return [
        VersionReading(number, version, nothing, nothing)
        for number, version in enumerate(versions)
        if version.refused is not None
    ]


def _opened(readers: Sequence[_VersionReader]) -> tuple[Column, ...]:
    """Return what parsing uses many times."""
    found = opened([reader.reading for reader in readers])
    return (
        *map(F.col, (*_POSITION, "key", "value", KEY, VALUE)),
        *(column.alias(name) for name, column in found.items()),
        *(column for reader in readers for column in reader.opened_moves()),
    )


def _parsed(readers: Sequence[_VersionReader]) -> tuple[Column, ...]:
    """Return everything that decoding needs from an event's bytes."""
    payloads = parsed([reader.reading for reader in readers])
    return (
        *map(F.col, (*_POSITION, "key", "value", KEY, VALUE)),
        *(column.alias(name) for name, column in payloads.items()),
        *(column for reader in readers for column in reader.parsed_moves()),
    )


def _read(
    readers: Sequence[_VersionReader],
    refused: Sequence[VersionReading],
    columns: TableColumns,
    source: StructType,
) -> tuple[Column, ...]:
    is_read = _any([reader.is_of_version for reader in readers])
    readings = [*(reader.reading for reader in readers), *refused]
    return (
        *map(F.col, _POSITION),
        F.when(~is_read, unread_reason(readings)).alias("unreadable"),
        F.coalesce(_of_version(readers, lambda r: r.has_key(), BooleanType()), F.lit(False)).alias("has_key"),
        _of_version(readers, lambda r: r.problem(), StringType()).alias("problem"),
        _of_version(readers, lambda r: r.has_unnamed_column(), BooleanType()).alias("has_unnamed_column"),
        _of_version(readers, lambda r: r.operation(), StringType()).alias("op"),
        _of_version(readers, lambda r: r.source(), source).alias("source"),
        _of_version(readers, lambda r: r.row(), columns.row_type).alias("row"),
        _of_version(readers, lambda r: r.unavailable(), ArrayType(StringType())).alias("unavailable"),
        _of_version(readers, lambda r: r.value_is_corrupt(), BooleanType()).alias("value_is_corrupt"),
        _of_version(readers, lambda r: r.key_is_corrupt(), BooleanType()).alias("key_is_corrupt"),
        _of_version(readers, lambda r: r.key_row(), _key_type(columns)).alias("key_row"),
        _of_version(readers, lambda r: r.moved_row(r.moved_to), _key_type(columns)).alias("moved_to"),
        _of_version(readers, lambda r: r.moved_row(r.moved_from), _key_type(columns)).alias("moved_from"),
    )


def _change(columns: TableColumns, log: SourceLog) -> tuple[Column, ...]:
    source = F.col("source")
    is_delete = F.col("op") == DELETE
    return (
        F.col("topic"),
        F.col("partition"),
        F.col("offset"),
        F.col("op"),
        F.when(F.col("op") != TRUNCATE, _record_key(F.col("key_row"), columns)).alias("key"),
        _record_key(F.col("moved_to"), columns).alias("moved_to"),
        _record_key(F.col("moved_from"), columns).alias("moved_from"),
        F.timestamp_micros(F.coalesce(source["ts_us"], source["ts_ms"] * 1000)).alias("source_ts"),
        log.position(source).alias("position"),
        log.log_position(source).alias("log_position"),
        source["snapshot"].alias("snapshot"),
        _with_key(columns, F.when(~is_delete, F.col("row"))).alias("row"),
        F.when(is_delete, _no_names()).otherwise(F.col("unavailable")).alias("unavailable"),
        _why_bad().alias("reason"),
    )


def _why_bad() -> Column:
    """Return the first reason why an event is bad; null for a good event."""
    op = F.col("op")
    needs_row = op.isin(CREATE, UPDATE, READ)
    is_known_operation = op.isin(CREATE, UPDATE, READ, DELETE, TRUNCATE)
    return (
        F.when(F.col("unreadable").isNotNull(), F.col("unreadable"))
        .when(F.col("problem").isNotNull(), F.col("problem"))
        .when(F.col("value_is_corrupt"), MISMATCH)
        .when(F.col("has_unnamed_column"), UNNAMED_COLUMN)
        .when(op.isNull() | ~is_known_operation, UNKNOWN_OPERATION)
        # The rare condition comes first, so that the text is seldom compared.
        .when(~F.col("has_key") & (op != TRUNCATE), MISSING_KEY)
        .when(F.col("key_is_corrupt") & (op != TRUNCATE), MISMATCH)
        .when(F.col("row").isNull() & needs_row, MISSING_ROW)
    )


@dataclass(frozen=True)
class _VersionReader:
    """The columns in which one version's payloads are parsed, and their values in the lake.

    Parsing and converting are two projections, so that each payload is parsed once and not once per column.
    """

    reading: VersionReading
    columns: TableColumns
    log: SourceLog

    @staticmethod
    def of(number: int, version: SchemaVersion, columns: TableColumns, log: SourceLog) -> _VersionReader:
        row, key = _wire_type(_conversions(version.row)), _wire_type(_conversions(version.key))
        key_in_row = () if version.has_own_key else tuple(name for name, _ in version.key)
        value = SHAPES[version.shape].wire(row, key_in_row, source_type(log))
        return _VersionReader(VersionReading(number, version, value, key), columns, log)

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
        conversions, lake = self._key_conversions(), _key_type(self.columns)
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
            return _no_names()
        names = [F.when(condition, F.lit(name)) for name, condition in stands_for_it.items()]
        # Spark does not compile the code that picks the names, and few rows lack a value.
        lacks_one = _any(list(stands_for_it.values()))
        return F.when(lacks_one, F.array_compact(F.array(*names))).otherwise(_no_names())

    def value_is_corrupt(self) -> Column:
        return _has_failed(self._shape.row(self.value), self._row_conversions())

    def key_is_corrupt(self) -> Column:
        conversions = self._key_conversions()
        if not self.version.has_own_key:
            values = {name: self._shape.key_value(self.value, name) for name in conversions}
            return _any([value.isNull() for value in values.values()]) | _have_failed(values, conversions)
        has_null = _any([self.key[name].isNull() for name in conversions])
        return self._key_read["problem"].isNotNull() | has_null | _has_failed(self.key, conversions)

    @property
    def _shape(self) -> PayloadShape:
        return self.reading.shape

    def _key_in_lake_types(self, parsed: Column) -> Column:
        return F.when(
            parsed.isNotNull(), _in_lake_types(parsed, self._key_conversions(), _key_type(self.columns))
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


def _of_version(
    readers: Sequence[_VersionReader], expression: Callable[[_VersionReader], Column], data_type: DataType
) -> Column:
    """Return the expression of the reader whose version the event has; null if no reader has it."""
    # Use one flat CASE: Spark computes the type of a nested CASE twice per level.
    cases = reduce(lambda case, reader: case.when(reader.is_of_version, expression(reader)), readers, F)
    return cases.otherwise(F.lit(None).cast(data_type)) if readers else F.lit(None).cast(data_type)


def _no_names() -> Column:
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
    return _any([F.coalesce(failure, F.lit(False)) for failure in failures])


def _any(conditions: Sequence[Column]) -> Column:
    """Return whether any condition holds, joined in halves.

    A chain of a thousand nested conditions would overflow the stack in Spark's recursion."""
    if len(conditions) < 2:
        return conditions[0] if conditions else F.lit(False)
    middle = len(conditions) // 2
    return _any(conditions[:middle]) | _any(conditions[middle:])


def _key_type(columns: TableColumns) -> StructType:
    lake = dict(columns.row)
    return StructType([StructField(name, lake[name]) for name in columns.key])


def _record_key(key_row: Column, columns: TableColumns) -> Column:
    """Return the key's columns as JSON objects without commas. Different keys give different texts.

    Where a record key has both a comma and a colon, Hudi takes it for several columns' values
    (KeyGenUtils#extractRecordKeysByFields): all such rows would be in one bucket, and some keys would keep it
    searching endlessly."""
    objects = [_as_json(key_row, field.name, field.dataType) for field in _key_type(columns).fields]
    return F.when(key_row.isNotNull(), F.concat_ws(" ", *objects))


def _as_json(key_row: Column, name: str, data_type: DataType) -> Column:
    value = key_row[name]
    if isinstance(data_type, IntegerType | LongType) and _NEEDS_NO_ESCAPE.fullmatch(name):
        # This equals the output of `to_json`, which creates a JSON generator for each value.
        return F.concat(F.lit(f'{{"{name}":'), F.coalesce(value.cast("string"), F.lit("null")), F.lit("}"))
    text = F.to_json(F.struct(value.alias(name)), _KEY_JSON_OPTIONS)
    return F.replace(text, F.lit(","), F.lit("\\u002c"))


def _with_key(columns: TableColumns, row: Column) -> Column:
    return F.struct(
        *[
            (F.col("key_row")[name] if name in columns.key else row[name]).alias(name)
            for name in columns.names
        ]
    )
