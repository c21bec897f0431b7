"""Decode: turn raw events of any wire form into changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from spark_app.columns.table_columns import TableColumns
from spark_app.positions.source_log import SourceLog
from spark_app.sources.event import EVENT
from spark_app.steps.steps import Name, Projections, steps
from spark_app.wire.form import VersionReading
from spark_app.wire.forms import documents, opened, parsed, schemas_of, unread_reason, with_documents
from spark_app.wire.json_document import KEY, VALUE
from spark_app.wire.payload_shapes import opened_for_operation, operation_in, source_type
from spark_app.wire.reasons import (
    MISMATCH,
    MISSING_KEY,
    MISSING_ROW,
    REASONS,
    UNKNOWN_OPERATION,
    UNKNOWN_SCHEMA,
    UNNAMED_COLUMN,
)
from spark_app.wire.record_key import key_type, record_key
from spark_app.wire.schema_version import SchemaVersion
from spark_app.wire.version_reader import VersionReader, any_of, no_names

CREATE, UPDATE, DELETE, READ, TRUNCATE = "c", "u", "d", "r", "t"


def change_type(columns: TableColumns) -> StructType:
    """Return the schema of a change.

    key           the record key: a JSON object, without a comma, for each key column
    moved_from    the row's key before its primary key changed
    moved_to      the row's new key, on the delete of its old key
    position      its place in the stream (`SourceLog.position`); empty if the change has none
    log_position  its place in the log (`SourceLog.log_position`); empty if the change has none
    row           the values after the change; for a delete, only the key's
    unavailable   the columns of `row` that the update left unchanged, and whose values Debezium did not know
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

    A column whose value the update left out is not among them. A delete has no row."""
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
    readers = [VersionReader.of(number, version, columns, log) for number, version in enumerate(readable)]
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


def _opened(readers: Sequence[VersionReader]) -> tuple[Column, ...]:
    """Return what parsing uses many times."""
    found = opened([reader.reading for reader in readers])
    return (
        *map(F.col, (*_POSITION, "key", "value", KEY, VALUE)),
        *(column.alias(name) for name, column in found.items()),
        *(column for reader in readers for column in reader.opened_moves()),
    )


def _parsed(readers: Sequence[VersionReader]) -> tuple[Column, ...]:
    """Return everything that decoding needs from an event's bytes."""
    payloads = parsed([reader.reading for reader in readers])
    return (
        *map(F.col, (*_POSITION, "key", "value", KEY, VALUE)),
        *(column.alias(name) for name, column in payloads.items()),
        *(column for reader in readers for column in reader.parsed_moves()),
    )


def _read(
    readers: Sequence[VersionReader],
    refused: Sequence[VersionReading],
    columns: TableColumns,
    source: StructType,
) -> tuple[Column, ...]:
    is_read = any_of([reader.is_of_version for reader in readers])
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
        _of_version(readers, lambda r: r.key_row(), key_type(columns)).alias("key_row"),
        _of_version(readers, lambda r: r.moved_row(r.moved_to), key_type(columns)).alias("moved_to"),
        _of_version(readers, lambda r: r.moved_row(r.moved_from), key_type(columns)).alias("moved_from"),
    )


def _change(columns: TableColumns, log: SourceLog) -> tuple[Column, ...]:
    source = F.col("source")
    is_delete = F.col("op") == DELETE
    return (
        F.col("topic"),
        F.col("partition"),
        F.col("offset"),
        F.col("op"),
        F.when(F.col("op") != TRUNCATE, record_key(F.col("key_row"), columns)).alias("key"),
        record_key(F.col("moved_to"), columns).alias("moved_to"),
        record_key(F.col("moved_from"), columns).alias("moved_from"),
        F.timestamp_micros(F.coalesce(source["ts_us"], source["ts_ms"] * 1000)).alias("source_ts"),
        log.position(source).alias("position"),
        log.log_position(source).alias("log_position"),
        source["snapshot"].alias("snapshot"),
        _with_key(columns, F.when(~is_delete, F.col("row"))).alias("row"),
        F.when(is_delete, no_names()).otherwise(F.col("unavailable")).alias("unavailable"),
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


def _of_version(
    readers: Sequence[VersionReader], expression: Callable[[VersionReader], Column], data_type: DataType
) -> Column:
    """Return the expression of the reader whose version the event has; null if no reader has it."""
    # Use one flat CASE: Spark computes the type of a nested CASE twice per level.
    cases = reduce(lambda case, reader: case.when(reader.is_of_version, expression(reader)), readers, F)
    return cases.otherwise(F.lit(None).cast(data_type)) if readers else F.lit(None).cast(data_type)


def _with_key(columns: TableColumns, row: Column) -> Column:
    return F.struct(
        *[
            (F.col("key_row")[name] if name in columns.key else row[name]).alias(name)
            for name in columns.names
        ]
    )
