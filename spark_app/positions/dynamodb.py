"""Positions of DynamoDB's changes: when a change was written, and its sequence number in Kinesis."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_app.positions.source_log import NOWHERE

_FIELDS = StructType([StructField("sequence_number", StringType())])


@dataclass(frozen=True)
class ItemLog:
    """Positions of items' changes: the time in microseconds, then the sequence number.

    DynamoDB sends records in another order than it wrote the items, and more than once. Only the time that it
    puts into them tells which one is newer. Changes of one item at one time are ordered by Kinesis, whose
    sequence numbers grow in a shard and from a shard to those that follow it."""

    @property
    def keeps_order(self) -> bool:
        return False

    @property
    def shares_positions(self) -> bool:
        return False

    @property
    def isolates_moves(self) -> bool:
        # The key of an item cannot change, so it does not matter here.
        return True

    @property
    def fields(self) -> StructType:
        return _FIELDS

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(_FIELDS.names)

    @property
    def required(self) -> tuple[str, ...]:
        return ("sequence_number",)

    def position(self, source: Column) -> Column:
        digits = F.coalesce(source["sequence_number"], F.lit("0"))
        # With its length before it, a number with more digits sorts after one with fewer.
        length = F.length(digits).cast("short").cast("binary")
        place = F.concat(source["ts_us"].cast("binary"), length, digits.cast("binary"))
        return F.coalesce(place, F.lit(NOWHERE))

    def log_position(self, source: Column) -> Column:
        return self.position(source)
