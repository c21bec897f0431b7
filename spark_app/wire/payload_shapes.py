"""Shapes: where in a payload its operation, its source's place and its row stand, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import ClassVar, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.jvm.payload_reader import ClosedStruct, ReadableShape, read_shape
from spark_app.positions.registry import SOURCE_LOGS
from spark_app.positions.source_log import SourceLog
from spark_app.wire.schema_version import Shape

_OF_ENGINES = "|".join(sorted({name for log in SOURCE_LOGS.values() for name in log.own_names}))
METADATA_FIELD = (
    "__(deleted|(source_|transaction_)?(op|version|connector|name|ts_ms|ts_us|ts_ns|snapshot|db|sequence|schema"
    f"|table|id|total_order|data_collection_order|{_OF_ENGINES}))"
)
"""A regular expression, of Python and Java, for the fields that `ExtractNewRecordState` adds to a row."""

_OF_ALL_ENGINES = (
    StructField("ts_ms", LongType()),
    StructField("ts_us", LongType()),
    StructField("snapshot", StringType()),
)


def source_type(log: SourceLog) -> StructType:
    """Return what is read of an envelope's `source`."""
    return StructType([*_OF_ALL_ENGINES, *log.fields.fields])


class PayloadShape(Protocol):
    """Reads a payload that was parsed as `wire`.

    row_in_payload  where its row is
    names           names at the top of a payload without a schema, which tell that it has this shape
    least_names     how many of `names` it has at least
    """

    row_in_payload: ClassVar[ClosedStruct]
    names: ClassVar[tuple[str, ...]]
    least_names: ClassVar[int]

    def wire(self, row: StructType, key: Sequence[str], source: StructType, /) -> StructType:
        """The type to parse a payload as. `row`: of the source's columns; `key`: those of them that the row
        has to give for a delete too; `source`: `source_type` of the engine's log."""

    def operation(self, payload: Column) -> Column: ...

    def source(self, payload: Column, log: SourceLog, /) -> Column:
        """A struct of `source_type(log)`."""

    def row(self, payload: Column) -> Column:
        """A struct with the source's columns, null where there is no row."""

    def key_value(self, payload: Column, name: str) -> Column:
        """A key column's value, of a delete too."""

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
    """What `ExtractNewRecordState` leaves of an envelope: `add.fields` as `__op`, `__source_sequence`, …

    A change has a position only where all fields are there that the log requires. Without it, the offset
    alone says what came first.
    """

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
"""By name. A payload without a schema has the first of them whose names it has: no envelope has an
unwrapped row's, but a row can have columns with the names of an envelope's fields."""


def read_in_its_shape(payload: Column, types: Mapping[Shape, StructType]) -> Column:
    """Return a struct with a field for each shape, of which the payload's own is not null: its
    `read_payload`. Null where the text is no JSON object or has none of the shapes."""
    found = [
        ReadableShape(name, types[name], shape.row_in_payload, shape.names, shape.least_names)
        for name, shape in SHAPES.items()
        if name in types
    ]
    return read_shape(payload, found)


def operation_of(payload: Column) -> Column:
    """Return the operation of a payload of any shape, whose columns need not be known; null if it tells
    none."""
    no_columns, source = StructType([]), StructType([*_OF_ALL_ENGINES])
    types = {name: shape.wire(no_columns, (), source) for name, shape in SHAPES.items()}
    read = read_in_its_shape(payload, types)
    return F.coalesce(*[shape.operation(read[name]["payload"]) for name, shape in SHAPES.items()])
