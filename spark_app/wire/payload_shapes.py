"""Shapes: where a payload has its operation, its source's place and its row, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import ClassVar, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.positions.registry import SOURCE_LOGS
from spark_app.positions.source_log import SourceLog
from spark_app.steps.payloads import ClosedStruct, ReadableShape
from spark_app.steps.steps import steps
from spark_app.wire.schema_version import Shape

_OF_ENGINES = "|".join(sorted({name for log in SOURCE_LOGS.values() for name in log.own_names}))
METADATA_FIELD = (
    "__(deleted|(source_|transaction_)?(op|version|connector|name|ts_ms|ts_us|ts_ns|snapshot|db|sequence|schema"
    f"|table|id|total_order|data_collection_order|{_OF_ENGINES}))"
)
"""A regular expression, for Python and Java, of the fields that `ExtractNewRecordState` adds to a row."""

_OF_ALL_ENGINES = (
    StructField("ts_ms", LongType()),
    StructField("ts_us", LongType()),
    StructField("snapshot", StringType()),
)


def source_type(log: SourceLog) -> StructType:
    """Return the type of the fields that are read from an envelope's `source`."""
    return StructType([*_OF_ALL_ENGINES, *log.fields.fields])


class PayloadShape(Protocol):
    """Reads a payload that was parsed as `wire`.

    row_in_payload  the place of its row
    names           top-level names by which a payload without a schema is recognized as this shape
    least_names     how many of `names` it has at least
    """

    row_in_payload: ClassVar[ClosedStruct]
    names: ClassVar[tuple[str, ...]]
    least_names: ClassVar[int]

    def wire(self, row: StructType, key: Sequence[str], source: StructType, /) -> StructType:
        """Return the type to parse a payload as.

        row     the type of the source's columns
        key     the columns that the row has to provide for a delete too
        source  `source_type` of the engine's log
        """

    def operation(self, payload: Column) -> Column: ...

    def source(self, payload: Column, log: SourceLog, /) -> Column:
        """Return a struct of `source_type(log)`."""

    def row(self, payload: Column) -> Column:
        """Return a struct with the source's columns, null if there is no row."""

    def key_value(self, payload: Column, name: str) -> Column:
        """Return a key column's value, also for a delete."""

    def tells_position(self, payload: Column, log: SourceLog, /) -> Column:
        """Return whether the payload says where in the source's log the change stands."""


@dataclass(frozen=True)
class Envelope:
    row_in_payload: ClassVar[ClosedStruct] = ClosedStruct("after")
    names: ClassVar[tuple[str, ...]] = ("before", "after", "source", "op")
    least_names: ClassVar[int] = 2

    def wire(self, row: StructType, key: Sequence[str], source: StructType, /) -> StructType:
        before = StructType([row[name] for name in key])
        return StructType(
            [
                StructField("op", StringType()),
                StructField("source", source),
                StructField("after", row),
                *([StructField("before", before)] if key else []),
            ]
        )

    def operation(self, payload: Column) -> Column:
        return payload["op"]

    def source(self, payload: Column, _log: SourceLog, /) -> Column:
        return payload["source"]

    def row(self, payload: Column) -> Column:
        return payload["after"]

    def key_value(self, payload: Column, name: str) -> Column:
        after = payload["after"]
        return F.when(after.isNull(), payload["before"][name]).otherwise(after[name])

    def tells_position(self, payload: Column, _log: SourceLog, /) -> Column:
        return payload["source"].isNotNull()


@dataclass(frozen=True)
class Unwrapped:
    """The row that `ExtractNewRecordState` takes out of an envelope.

    It has the `add.fields` as `__op`, `__source_sequence`, … A change has a position only if all fields that
    the log requires are there. Otherwise only the offset gives the order."""

    row_in_payload: ClassVar[ClosedStruct] = ClosedStruct(ignored=METADATA_FIELD)
    names: ClassVar[tuple[str, ...]] = ("__op", "__deleted")
    least_names: ClassVar[int] = 1

    def wire(self, row: StructType, _key: Sequence[str], source: StructType, /) -> StructType:
        metadata = [StructField("__op", StringType()), StructField("__deleted", StringType())]
        for field in source.fields:
            metadata += [StructField(f"{prefix}{field.name}", field.dataType) for prefix in _PREFIXES]
        return StructType([*row.fields, *(field for field in metadata if field.name not in row.names)])

    def operation(self, payload: Column) -> Column:
        is_written = F.when(payload["__deleted"].isNotNull(), "u")
        return F.when(payload["__deleted"] == "true", "d").otherwise(F.coalesce(payload["__op"], is_written))

    def source(self, payload: Column, log: SourceLog) -> Column:
        fields = source_type(log).names
        found = {name: _first_of(payload, name) for name in fields}
        is_complete = self.tells_position(payload, log)
        found |= {name: F.when(is_complete, found[name]) for name in log.fields.names}
        # The bare names are the times at which Debezium worked, and not when the source committed.
        found |= {name: payload[f"__source_{name}"] for name in ("ts_ms", "ts_us")}
        return F.struct(*[found[name].alias(name) for name in fields])

    def row(self, payload: Column) -> Column:
        return payload

    def key_value(self, payload: Column, name: str) -> Column:
        return payload[name]

    def tells_position(self, payload: Column, log: SourceLog) -> Column:
        return reduce(and_, [_first_of(payload, name).isNotNull() for name in log.required])


_PREFIXES = ("__source_", "__")


def _first_of(payload: Column, name: str) -> Column:
    return F.coalesce(*[payload[f"{prefix}{name}"] for prefix in _PREFIXES])


SHAPES: dict[Shape, PayloadShape] = {"unwrapped": Unwrapped(), "envelope": Envelope()}
"""The shapes by name.

A payload without a schema has the first shape whose names it has. No envelope has an unwrapped row's names,
but a row can have columns with the names of an envelope's fields."""


def open_in_its_shape(payload: Column, types: Mapping[Shape, StructType]) -> Column:
    """Return what `read_in_its_shape` takes of a payload (`Steps.open_shape`)."""
    return steps().open_shape(payload, _readable(types))


def read_in_its_shape(opened: Column, types: Mapping[Shape, StructType]) -> Column:
    """Return a struct with a field for each shape, in which only the payload's own shape is not null.

    That field is the result of `read_payload`. The struct is null if the text is no JSON object or has none
    of the shapes."""
    return steps().read_shape(opened, _readable(types))


def _readable(types: Mapping[Shape, StructType]) -> list[ReadableShape]:
    return [
        ReadableShape(name, types[name], shape.row_in_payload, shape.names, shape.least_names)
        for name, shape in SHAPES.items()
        if name in types
    ]


def opened_for_operation(payload: Column) -> Column:
    """Return what `operation_in` takes of a payload.

    A select of its own has to compute it. Otherwise Spark would plan it again for each of its uses."""
    return open_in_its_shape(payload, _types_of_operations())


def operation_in(opened: Column) -> Column:
    """Return the operation of an opened payload of any shape; null if it has none.

    The columns of the row need not be known."""
    read = read_in_its_shape(opened, _types_of_operations())
    return F.coalesce(*[shape.operation(read[name]["payload"]) for name, shape in SHAPES.items()])


def _types_of_operations() -> Mapping[Shape, StructType]:
    no_columns, source = StructType([]), StructType([*_OF_ALL_ENGINES])
    return {name: shape.wire(no_columns, (), source) for name, shape in SHAPES.items()}
