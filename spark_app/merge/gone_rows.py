"""Rows that an online snapshot has shown to be gone from the source, although no event says so."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION, ORDERING
from spark_app.columns.table_columns import DELETED
from spark_app.ledger.ledger import AppliedSnapshot
from spark_app.merge.by_partition import where_partition
from spark_app.merge.order import ordering


def is_gone(rows: DataFrame, snapshot: AppliedSnapshot, epoch: int) -> Column:
    """Return whether one of these silver rows is there, and had no change since the snapshot began.

    The snapshot has read all rows that there are. A row that it did not send was changed while it ran, and so
    has a later change."""
    is_there = ~F.col(DELETED) if DELETED in rows.columns else F.col(OPERATION) != DELETE_MARKER
    conditions = {
        partition: F.col(ORDERING) < ordering(epoch, F.lit(first).cast("bigint"))
        for partition, first in snapshot.began.items()
    }
    return is_there & where_partition(conditions, of="_partition")


def as_deleted(rows: DataFrame, snapshot: AppliedSnapshot) -> DataFrame:
    """Return silver rows as deleted ones: with the operation of a delete, at the time of the snapshot.

    They keep `_seq`, because no event has deleted them."""
    deleted = {
        OPERATION: F.lit(DELETE_MARKER),
        "_source_ts": F.timestamp_micros(F.lit(snapshot.began_us).cast("bigint")),
        DELETED: F.lit(True),
    }
    return rows.select(*[deleted.get(name, F.col(name)).alias(name) for name in rows.columns])
