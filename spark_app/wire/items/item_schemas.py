"""What the items of a table have had so far, and how Spark reads their records with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.columns.table_columns import TableColumns
from spark_app.positions.source_log import SourceLog
from spark_app.wire.decode import change_type
from spark_app.wire.items.decoder import ItemDecoder, attributes_in
from spark_app.wire.items.item_columns import Attributes, ItemColumns
from spark_app.wire.reasons import MISSING_KEY, UNKNOWN_SCHEMA
from tributary.contract.item_stream import ItemRules


@dataclass
class ItemSchemas:
    """Learns the attributes of items (`wire.schemas.Schemas`).

    Records are decoded in Python. Items have a type for each value, to any depth, which no schema of Spark
    describes. And a shard brings at most a megabyte a second."""

    rules: ItemRules
    log: SourceLog
    seen: Attributes = field(default_factory=Attributes, init=False)

    @property
    def is_empty(self) -> bool:
        return not self.seen.key

    @property
    def names_keys_apart(self) -> bool:
        return True

    def learn(self, events: DataFrame) -> bool:
        found = events.select("value").rdd.mapPartitions(_attributes_of_task).collect()
        before = self.seen
        for of_task in found:
            self.seen = self.seen.with_others(of_task)
        return self.seen is not before

    def columns(self, current: TableColumns | None) -> TableColumns | None:
        return ItemColumns(self.rules).columns(current, self.seen)

    def columns_anew(self) -> TableColumns | None:
        return self.columns(None)

    def decode(self, events: DataFrame, columns: TableColumns) -> DataFrame:
        decoder = F.udf(ItemDecoder(ItemColumns(self.rules), columns), _decoded_type(columns))
        decoded = events.select(
            "topic",
            "partition",
            "offset",
            # Otherwise Spark could call the function once for each of its fields.
            decoder.asNondeterministic()("key", "value").alias("change"),
        )
        return decoded.where(F.col("change").isNotNull()).select(*_change(columns, self.log))

    def undecodable(self, events: DataFrame) -> DataFrame:
        unknown = ItemDecoder(ItemColumns(self.rules), TableColumns((), ()))
        decoder = F.udf(unknown, _decoded_type(unknown.columns)).asNondeterministic()
        found = events.select("topic", "partition", "offset", decoder("key", "value")["reason"].alias("why"))
        # Without a key, no record can be read. A record with another reason is bad in any case.
        why = F.when(F.col("why") == UNKNOWN_SCHEMA, MISSING_KEY).otherwise(F.col("why"))
        return found.select("topic", "partition", "offset", why.alias("reason"))


def _attributes_of_task(rows: Iterable[Row]) -> Iterator[Attributes]:
    yield attributes_in(row["value"] for row in rows)


def _decoded_type(columns: TableColumns) -> StructType:
    """Return the type of `decoder.Decoded`."""
    return StructType(
        [
            StructField("op", StringType()),
            StructField("key", StringType()),
            StructField("ts_us", LongType()),
            StructField("sequence_number", StringType()),
            StructField("row", columns.row_type),
            StructField("reason", StringType()),
        ]
    )


def _change(columns: TableColumns, log: SourceLog) -> list[Column]:
    change = F.col("change")
    values = {
        "op": change["op"],
        "key": change["key"],
        "source_ts": F.timestamp_micros(change["ts_us"]),
        "position": log.position(change),
        "log_position": log.log_position(change),
        "row": change["row"],
        "unavailable": F.when(change["reason"].isNull(), F.array().cast("array<string>")),
        "reason": change["reason"],
    }
    return [
        values.get(name, F.col(name) if name in _PLACE else F.lit(None)).cast(field_type).alias(name)
        for name, field_type in ((field.name, field.dataType) for field in change_type(columns).fields)
    ]


_PLACE = ("topic", "partition", "offset")
