"""Shapes: where in a payload its operation, its source's place and its row stand, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.jvm.payload_reader import ClosedStruct, ReadableShape, read_shape
from spark_app.wire.schema_version import Shape

METADATA_FIELD = (
    "__(deleted|(source_|transaction_)?(op|version|connector|name|ts_ms|ts_us|ts_ns|snapshot|db|sequence|schema"
    "|table|txId|lsn|xmin|origin|origin_lsn|id|total_order|data_collection_order))"
)
"""A regular expression, of Python and Java, for the fields that `ExtractNewRecordState` adds to a row."""

SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        StructField("ts_us", LongType()),
        StructField("snapshot", StringType()),
        StructField("sequence", StringType()),
        StructField("txId", LongType()),
        StructField("lsn", LongType()),
    ]
)
"""What is read of an envelope's `source`."""


class PayloadShape(Protocol):
    """Reads a payload that was parsed as `wire`.

    row_in_payload  where its row is
    names           names at the top of a payload without a schema, which tell that it has this shape
    least_names     how many of `names` it has at least
    """

    row_in_payload: ClassVar[ClosedStruct]
    names: ClassVar[tuple[str, ...]]
    least_names: ClassVar[int]

    def wire(self, row: StructType, key: Sequence[str], /) -> StructType:
        """The type to parse a payload as. `row`: of the source's columns; `key`: those of them that the row
        has to give for a delete too."""

    def operation(self, payload: Column) -> Column: ...

    def source(self, payload: Column) -> Column:
        """A struct of the fields of `SOURCE`."""

    def row(self, payload: Column) -> Column:
        """A struct with the source's columns, null where there is no row."""

    def key_value(self, payload: Column, name: str) -> Column:
        """A key column's value, of a delete too."""

    def has_place(self, payload: Column) -> Column:
        """Whether the payload says where in the source's log the change stands."""


@dataclass(frozen=True)
class Envelope:
    row_in_payload: ClassVar[ClosedStruct] = ClosedStruct("after")
    names: ClassVar[tuple[str, ...]] = ("before", "after", "source", "op")
    least_names: ClassVar[int] = 2

    def wire(self, row: StructType, key: Sequence[str], /) -> StructType:
        before = StructType([row[name] for name in key])
        return StructType(
            [
                StructField("op", StringType()),
                StructField("source", SOURCE),
                StructField("after", row),
                *([StructField("before", before)] if key else []),
            ]
        )

    def operation(self, payload: Column) -> Column:
        return payload["op"]

    def source(self, payload: Column) -> Column:
        return payload["source"]

    def row(self, payload: Column) -> Column:
        return payload["after"]

    def key_value(self, payload: Column, name: str) -> Column:
        after = payload["after"]
        return F.when(after.isNull(), payload["before"][name]).otherwise(after[name])

    def has_place(self, payload: Column) -> Column:
        return payload["source"].isNotNull()


@dataclass(frozen=True)
class Unwrapped:
    """What `ExtractNewRecordState` leaves of an envelope: `add.fields` as `__op`, `__source_sequence`, …

    A position in the log alone does not order changes: transactions that ran at the same time are sent one
    after the other, each with its own positions. So without `source.sequence` a change has none, and the
    offset alone says what came first.
    """

    row_in_payload: ClassVar[ClosedStruct] = ClosedStruct(ignored=METADATA_FIELD)
    names: ClassVar[tuple[str, ...]] = ("__op", "__deleted")
    least_names: ClassVar[int] = 1

    def wire(self, row: StructType, _key: Sequence[str], /) -> StructType:
        metadata = [StructField("__op", StringType()), StructField("__deleted", StringType())]
        for field in SOURCE.fields:
            metadata += [StructField(f"{prefix}{field.name}", field.dataType) for prefix in _PREFIXES]
        return StructType([*row.fields, *(field for field in metadata if field.name not in row.names)])

    def operation(self, payload: Column) -> Column:
        is_written = F.when(payload["__deleted"].isNotNull(), "u")
        return F.when(payload["__deleted"] == "true", "d").otherwise(F.coalesce(payload["__op"], is_written))

    def source(self, payload: Column) -> Column:
        found = {field.name: _first_of(payload, field.name) for field in SOURCE.fields}
        found["lsn"] = F.when(found["sequence"].isNotNull(), found["lsn"])
        # The bare names are the times at which Debezium worked, not those of the source's commit.
        found |= {name: payload[f"__source_{name}"] for name in ("ts_ms", "ts_us")}
        return F.struct(*[found[name].alias(name) for name in SOURCE.names])

    def row(self, payload: Column) -> Column:
        return payload

    def key_value(self, payload: Column, name: str) -> Column:
        return payload[name]

    def has_place(self, payload: Column) -> Column:
        return _first_of(payload, "sequence").isNotNull()


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
    no_columns = StructType([])
    read = read_in_its_shape(payload, {name: shape.wire(no_columns, ()) for name, shape in SHAPES.items()})
    return F.coalesce(*[shape.operation(read[name]["payload"]) for name, shape in SHAPES.items()])
