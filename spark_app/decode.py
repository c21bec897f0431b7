"""Decode: from raw events to changes, for Debezium's JSON envelope with inline schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.connect_schema import SchemaVersion
from spark_app.lake_types import Conversion, conversion
from spark_app.table_columns import TableColumns

CREATE, UPDATE, DELETE, READ, TRUNCATE = "c", "u", "d", "r", "t"
UNKNOWN_SCHEMA = "unknown_schema"

FRAMED = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("is_tombstone", BooleanType()),
        StructField("value_text", StringType()),
        StructField("is_valid_utf8", BooleanType()),
        StructField("is_framed", BooleanType()),
        StructField("schema_id", LongType()),
        StructField("key_schema", StringType()),
        StructField("value_schema", StringType()),
        StructField("key_payload", StringType()),
        StructField("payload", StringType()),
        StructField("moved_to", StringType()),
        StructField("moved_from", StringType()),
    ]
)
"""An event's texts, the schemas cut from the payloads. `schema_id` stands for the two schema texts; it is
that of the value's alone where the record has no key."""


def change_type(columns: TableColumns) -> StructType:
    """The schema of a change.

    `key` is the record key (canonical JSON of the key columns), `moved_from` the one that the row had before
    its primary key changed; `moved_to` is set where it left for another. `row` holds the values after the
    change, for a delete only the key's. `unavailable` names the columns of `row` whose value Debezium did not
    know (unchanged TOAST). `reason` is set where the event could not be decoded; then only the position is
    certain."""
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
            StructField("tx_id", LongType()),
            StructField("commit_lsn", LongType()),
            StructField("lsn", LongType()),
            StructField("snapshot", StringType()),
            StructField("row", columns.row_type),
            StructField("unavailable", ArrayType(StringType())),
            StructField("reason", StringType()),
            StructField("message", StringType()),
            StructField("schema_id", LongType()),
        ]
    )


_SCHEMA_START = '{"schema":'
_PAYLOAD_START = ',"payload":'

_SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        StructField("ts_us", LongType()),
        StructField("snapshot", StringType()),
        StructField("sequence", StringType()),
        StructField("txId", LongType()),
        StructField("lsn", LongType()),
    ]
)
_CORRUPT = "_corrupt_record"
_JSON_OPTIONS = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
_KEY_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def frame(events: DataFrame) -> DataFrame:
    """From `EVENT` to `FRAMED`.

    JsonConverter writes `{"schema":…,"payload":…}` without white space. The first `,"payload":` is the
    border: inside a JSON string its quotes would be escaped, and no node of a Connect schema has a field of
    that name."""
    texts = events.select(
        "topic",
        "partition",
        "offset",
        F.col("value").isNull().alias("is_tombstone"),
        F.col("value").cast("string").alias("value_text"),
        F.col("value").alias("value_bytes"),
        F.col("key").cast("string").alias("key_text"),
        F.col("moved_to").cast("string").alias("moved_to"),
        F.col("moved_from").cast("string").alias("moved_from"),
    )
    cut = texts.select(
        "*",
        _schema_part(F.col("value_text")).alias("value_schema"),
        _payload_part(F.col("value_text")).alias("payload"),
        _schema_part(F.col("key_text")).alias("key_schema"),
        _payload_part(F.col("key_text")).alias("key_payload"),
    )
    is_valid_utf8 = F.encode("value_text", "UTF-8") == F.col("value_bytes")
    is_framed = F.col("value_schema").isNotNull() & F.col("payload").isNotNull()
    key_is_framed = F.col("key_text").isNull() | F.col("key_payload").isNotNull()
    return cut.select(
        "topic",
        "partition",
        "offset",
        "is_tombstone",
        "value_text",
        is_valid_utf8.alias("is_valid_utf8"),
        (is_framed & key_is_framed).alias("is_framed"),
        F.xxhash64(F.coalesce("key_schema", F.lit("")), F.coalesce("value_schema", F.lit(""))).alias(
            "schema_id"
        ),
        "key_schema",
        "value_schema",
        "key_payload",
        "payload",
        "moved_to",
        "moved_from",
    )


def schema_texts(framed: DataFrame, known: Iterable[int]) -> DataFrame:
    """The schemas of the events that none of the known ids names, in the order in which they appear.

    Columns: `schema_id bigint, key_schema string, value_schema string, first_offset bigint`.
    """
    is_new = F.col("is_framed") & ~F.col("schema_id").isin(list(known))
    return (
        framed.where(is_new)
        .groupBy("schema_id")
        .agg(
            F.first("key_schema").alias("key_schema"),
            F.first("value_schema").alias("value_schema"),
            F.min("offset").alias("first_offset"),
        )
        .orderBy("first_offset")
    )


def decode(framed: DataFrame, versions: Sequence[SchemaVersion], columns: TableColumns) -> DataFrame:
    """From `FRAMED` to changes (`change_type(columns)`), tombstones left out.

    `versions` are all that may occur; an event of another one gets the reason `unknown_schema`.
    """
    readers = [_VersionReader(number, version, columns) for number, version in enumerate(versions)]
    parsed = framed.where(~F.col("is_tombstone")).select("*", *[c for r in readers for c in r.parsed()])
    changes = parsed.select(
        "topic",
        "partition",
        "offset",
        "value_text",
        "is_valid_utf8",
        "is_framed",
        "schema_id",
        "key_payload",
        _of_version(readers, lambda r: r.is_of_version, BooleanType()).alias("is_known_version"),
        _of_version(readers, lambda r: r.envelope["op"], StringType()).alias("op"),
        _of_version(readers, lambda r: r.envelope["source"], _SOURCE).alias("source"),
        _of_version(readers, lambda r: r.row(), columns.row_type).alias("row"),
        _of_version(readers, lambda r: r.unavailable(), ArrayType(StringType())).alias("unavailable"),
        _of_version(readers, lambda r: r.envelope_is_corrupt(), BooleanType()).alias("envelope_is_corrupt"),
        _of_version(readers, lambda r: r.key_is_corrupt(), BooleanType()).alias("key_is_corrupt"),
        _of_version(readers, lambda r: r.key_row(r.key), _key_type(columns)).alias("key_row"),
        _of_version(readers, lambda r: r.key_row(r.moved_to), _key_type(columns)).alias("moved_to"),
        _of_version(readers, lambda r: r.key_row(r.moved_from), _key_type(columns)).alias("moved_from"),
    )
    source = F.col("source")
    sequence = F.split(F.translate(source["sequence"], '[]" ', ""), ",")
    is_delete = F.col("op") == DELETE
    reason = _reason()
    return changes.select(
        "topic",
        "partition",
        "offset",
        "op",
        F.when(F.col("op") != TRUNCATE, _canonical_key(F.col("key_row"))).alias("key"),
        _canonical_key(F.col("moved_to")).alias("moved_to"),
        _canonical_key(F.col("moved_from")).alias("moved_from"),
        F.timestamp_micros(F.coalesce(source["ts_us"], source["ts_ms"] * 1000)).alias("source_ts"),
        source["txId"].alias("tx_id"),
        F.coalesce(sequence[0].cast("bigint"), F.lit(0)).alias("commit_lsn"),
        F.coalesce(sequence[1].cast("bigint"), source["lsn"], F.lit(0)).alias("lsn"),
        source["snapshot"].alias("snapshot"),
        _with_key(columns, F.when(~is_delete, F.col("row"))).alias("row"),
        F.when(is_delete, _no_names()).otherwise(F.col("unavailable")).alias("unavailable"),
        reason.alias("reason"),
        F.when(reason.isNotNull(), _message(reason)).alias("message"),
        "schema_id",
    )


def undecodable(framed: DataFrame) -> DataFrame:
    """Why the events of `FRAMED` cannot be decoded while no table's key is known, as `topic, partition,
    offset, reason, message`. Tombstones are left out, and truncates: there is nothing yet that they could
    empty."""
    is_truncate = F.coalesce(F.get_json_object("payload", "$.op") == TRUNCATE, F.lit(False))
    reason = _unframed_reason().when(F.col("key_payload").isNull(), "missing_key").otherwise(UNKNOWN_SCHEMA)
    return (
        framed.where(~F.col("is_tombstone") & ~is_truncate)
        .select("topic", "partition", "offset", reason.alias("reason"))
        .select("*", _message(F.col("reason")).alias("message"))
    )


REASONS = {
    "not_utf8": "The value is not UTF-8 text.",
    "not_json": "The value is not JSON.",
    "no_schema": "The value or the key is JSON, but not the schema with a payload that JsonConverter writes.",
    UNKNOWN_SCHEMA: "The schema of the event cannot be read as a Debezium envelope.",
    "mismatch": "A value does not fit the schema that came with it, or a type of the lake.",
    "unknown_operation": "The operation is none of c, u, d, r and t.",
    "missing_key": "The record has no key, so no row can be told from another.",
    "missing_row": "The event has no row where its operation needs one.",
}
"""Why an event is put in quarantine: the code and what it means."""


def _reason() -> Column:
    op = F.col("op")
    needs_row = op.isin(CREATE, UPDATE, READ)
    is_known_operation = op.isin(CREATE, UPDATE, READ, DELETE, TRUNCATE)
    has_key = F.col("key_payload").isNotNull() & (F.col("key_payload") != "null")
    return (
        _unframed_reason()
        .when(F.col("is_known_version").isNull(), UNKNOWN_SCHEMA)
        .when(F.col("envelope_is_corrupt"), "mismatch")
        .when(op.isNull() | ~is_known_operation, "unknown_operation")
        .when((op != TRUNCATE) & ~has_key, "missing_key")
        .when((op != TRUNCATE) & F.col("key_is_corrupt"), "mismatch")
        .when(needs_row & F.col("row").isNull(), "missing_row")
    )


def _unframed_reason() -> Column:
    is_json = F.get_json_object("value_text", "$").isNotNull()
    return (
        F.when(~F.col("is_valid_utf8"), "not_utf8")
        .when(~F.col("is_framed") & ~is_json, "not_json")
        .when(~F.col("is_framed"), "no_schema")
    )


def _message(reason: Column) -> Column:
    texts = F.create_map(*[F.lit(text) for item in REASONS.items() for text in item])
    return texts[reason]


def _schema_part(text: Column) -> Column:
    start = len(_SCHEMA_START)
    border = F.instr(text, _PAYLOAD_START)
    is_framed = text.startswith(_SCHEMA_START) & (border > 0)
    return F.when(is_framed, text.substr(F.lit(start + 1), border - start - 1))


def _payload_part(text: Column) -> Column:
    border = F.instr(text, _PAYLOAD_START)
    is_framed = text.startswith(_SCHEMA_START) & (border > 0) & text.endswith("}")
    first = border + len(_PAYLOAD_START)
    return F.when(is_framed, text.substr(first, F.length(text) - first))


@dataclass(frozen=True)
class _VersionReader:
    """The columns in which one version's payloads are parsed, and what the lake makes of them.

    Parsing and converting are two projections, so that each payload is parsed once and not once a column.
    """

    number: int
    version: SchemaVersion
    columns: TableColumns

    @property
    def is_of_version(self) -> Column:
        return F.col("schema_id") == self.version.schema_id

    @property
    def envelope(self) -> Column:
        return F.col(f"envelope_{self.number}")

    @property
    def key(self) -> Column:
        return F.col(f"key_{self.number}")

    @property
    def moved_to(self) -> Column:
        return F.col(f"moved_to_{self.number}")

    @property
    def moved_from(self) -> Column:
        return F.col(f"moved_from_{self.number}")

    def parsed(self) -> list[Column]:
        return [
            self._parse("payload", self._envelope_wire()).alias(f"envelope_{self.number}"),
            self._parse("key_payload", self._key_wire()).alias(f"key_{self.number}"),
            self._parse("moved_to", self._key_wire()).alias(f"moved_to_{self.number}"),
            self._parse("moved_from", self._key_wire()).alias(f"moved_from_{self.number}"),
        ]

    def row(self) -> Column:
        after = self.envelope["after"]
        return F.when(
            after.isNotNull(), _in_lake_types(after, self._row_conversions(), self.columns.row_type)
        )

    def key_row(self, parsed: Column) -> Column:
        return F.when(
            parsed.isNotNull(), _in_lake_types(parsed, self._key_conversions(), _key_type(self.columns))
        )

    def unavailable(self) -> Column:
        names = [
            F.when(c.is_placeholder(self.envelope["after"][name]), F.lit(name))
            for name, c in self._row_conversions().items()
            if c.is_placeholder is not None
        ]
        return F.array_compact(F.array(*names)) if names else _no_names()

    def envelope_is_corrupt(self) -> Column:
        envelope = self.envelope
        failed = _has_failed(envelope["after"], self._row_conversions())
        return envelope.isNull() | envelope[_CORRUPT].isNotNull() | failed

    def key_is_corrupt(self) -> Column:
        conversions = self._key_conversions()
        has_null = reduce(lambda a, b: a | b, [self.key[name].isNull() for name in conversions], F.lit(False))
        return (
            self.key.isNull() | self.key[_CORRUPT].isNotNull() | has_null | _has_failed(self.key, conversions)
        )

    def _parse(self, text: str, wire: StructType) -> Column:
        return F.when(self.is_of_version, F.from_json(text, wire, _JSON_OPTIONS))

    def _row_conversions(self) -> dict[str, Conversion]:
        return {name: conversion(name, schema) for name, schema in self.version.row}

    def _key_conversions(self) -> dict[str, Conversion]:
        return {name: conversion(name, schema) for name, schema in self.version.key}

    def _envelope_wire(self) -> StructType:
        return StructType(
            [
                StructField("op", StringType()),
                StructField("source", _SOURCE),
                StructField("after", _wire_type(self._row_conversions())),
                StructField(_CORRUPT, StringType()),
            ]
        )

    def _key_wire(self) -> StructType:
        return StructType([*_wire_type(self._key_conversions()).fields, StructField(_CORRUPT, StringType())])


def _of_version(
    readers: Sequence[_VersionReader], expression: Callable[[_VersionReader], Column], data_type: DataType
) -> Column:
    """The expression of the reader whose version the event has; null where it has none of them."""
    # One flat CASE: Spark looks at the type of a nested one twice a level.
    cases = reduce(lambda case, reader: case.when(reader.is_of_version, expression(reader)), readers, F)
    return cases.otherwise(F.lit(None).cast(data_type)) if readers else F.lit(None).cast(data_type)


def _no_names() -> Column:
    return F.array().cast(ArrayType(StringType()))


def _wire_type(conversions: Mapping[str, Conversion]) -> StructType:
    return StructType([StructField(name, c.wire) for name, c in conversions.items()])


def _in_lake_types(parsed: Column, conversions: Mapping[str, Conversion], lake: StructType) -> Column:
    return F.struct(
        *[
            (
                conversions[field.name].to_lake(parsed[field.name])
                if field.name in conversions
                else F.lit(None)
            )
            .cast(field.dataType)
            .alias(field.name)
            for field in lake.fields
        ]
    )


def _has_failed(parsed: Column, conversions: Mapping[str, Conversion]) -> Column:
    failures = [c.has_failed(parsed[name]) for name, c in conversions.items() if c.has_failed is not None]
    return reduce(lambda a, b: a | F.coalesce(b, F.lit(False)), failures, F.lit(False))


def _key_type(columns: TableColumns) -> StructType:
    lake = dict(columns.row)
    return StructType([StructField(name, lake[name]) for name in columns.key])


def _canonical_key(key_row: Column) -> Column:
    return F.to_json(key_row, _KEY_JSON_OPTIONS)


def _with_key(columns: TableColumns, row: Column) -> Column:
    return F.struct(
        *[
            (F.col("key_row")[name] if name in columns.key else row[name]).alias(name)
            for name in columns.names
        ]
    )
