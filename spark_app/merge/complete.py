"""Complete: values that a batch does not contain come from the rows that the table holds."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import ORDERING, RECORD_KEY
from spark_app.columns.table_columns import DELETED, LOG_POSITION, TableColumns
from spark_app.ledger.ledger import Truncate
from spark_app.merge.order import seq_of_truncate
from spark_app.positions.source_log import NOWHERE
from spark_app.wire.decode import DELETE, TRUNCATE


def without_needless(folded: DataFrame, needed_by_deletes: tuple[str, ...]) -> DataFrame:
    """Take out of `missing`, for deletes, the columns that no delete needs."""
    is_delete = F.col("op").isin(DELETE, TRUNCATE)
    needed = F.lit(list(needed_by_deletes)).cast("array<string>")
    missing = F.when(is_delete, F.array_intersect("missing", needed)).otherwise(F.col("missing"))
    return folded.select(
        *[missing.alias("missing") if name == "missing" else name for name in folded.columns]
    )


def complete(folded: DataFrame, stored: DataFrame, columns: TableColumns) -> DataFrame:
    """Fill the missing columns of `folded` from the table's rows.

    `stored` is the table as Spark reads it. Only rows that lack a value are looked up. A column that stays in
    `missing` has a value in neither.
    """
    keys = folded.where(F.size("missing") > 0).select(F.col("stored_key").alias("wanted_key")).distinct()
    stored_row = F.struct(
        *[
            (F.col(name) if name in stored.columns else F.lit(None)).cast(data_type).alias(name)
            for name, data_type in columns.row
        ]
    )
    found = stored.join(F.broadcast(keys), F.col(RECORD_KEY) == F.col("wanted_key"), "left_semi").select(
        F.col(RECORD_KEY).alias("found_key"), stored_row.alias("stored_row")
    )
    is_found = F.col("found_key").isNotNull()

    def value(name: str) -> Column:
        is_missing = F.array_contains("missing", name) & is_found
        return F.when(is_missing, F.col("stored_row")[name]).otherwise(F.col("row")[name]).alias(name)

    row = F.struct(*[value(name) for name in columns.names])
    missing = F.when(is_found, F.array().cast("array<string>")).otherwise(F.col("missing"))
    wants_lookup = (F.size("missing") > 0) & (F.col("stored_key") == F.col("found_key"))
    return folded.join(found, wants_lookup, "left").select(
        *[{"row": row, "missing": missing}.get(name, F.col(name)).alias(name) for name in folded.columns]
    )


def with_truncated_rows(
    folded: DataFrame, stored: DataFrame, columns: TableColumns, truncate: Truncate, epoch: int
) -> DataFrame:
    """Add to `folded`, for each row that only the table holds, the end of the row by the truncate.

    A row with a later position in the log stays: a partition that was ahead has brought it from after the
    truncate."""
    row = F.struct(
        *[
            (F.col(name) if name in stored.columns else F.lit(None)).cast(data_type).alias(name)
            for name, data_type in columns.row
        ]
    )
    is_there = ~F.col(DELETED) if DELETED in stored.columns else F.lit(True)
    is_older = (F.col("_partition") == truncate.partition) | (
        F.coalesce(F.col(LOG_POSITION), F.lit(NOWHERE)) <= F.lit(truncate.log_position)
    )
    untouched = stored.where(is_there & is_older).join(
        folded.select(F.col("key").alias("changed_key")),
        F.col(RECORD_KEY) == F.col("changed_key"),
        "left_anti",
    )
    ended = untouched.select(
        F.col(RECORD_KEY).alias("key"),
        F.lit(TRUNCATE).alias("op"),
        F.timestamp_micros(F.lit(truncate.source_us).cast("bigint")).alias("source_ts"),
        F.col("_topic").alias("topic"),
        F.lit(truncate.partition).alias("partition"),
        F.lit(truncate.offset).cast("bigint").alias("offset"),
        F.lit(truncate.log_position).alias("log_position"),
        seq_of_truncate(truncate, epoch, F.col("_partition"), F.col(ORDERING)).alias("seq"),
        row.alias("row"),
        F.array().cast("array<string>").alias("missing"),
        F.col(RECORD_KEY).alias("stored_key"),
    )
    return folded.unionByName(ended)
