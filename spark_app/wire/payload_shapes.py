"""Shapes: where in a payload its operation, its source's place and its row stand, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.jvm.payload_reader import ClosedStruct
from spark_app.wire.connect_schema import METADATA_FIELD, Shape

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
    """Reads a payload that was parsed as `wire`. `row_in_payload` is where its row is."""

    row_in_payload: ClassVar[ClosedStruct]

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
    row_in_payload: ClassVar = ClosedStruct("after")

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

    row_in_payload: ClassVar = ClosedStruct(ignored=METADATA_FIELD)

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


SHAPES: dict[Shape, PayloadShape] = {"envelope": Envelope(), "unwrapped": Unwrapped()}
