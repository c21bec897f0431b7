"""Fold a batch: reduce its changes to one row per key, and complete these rows from the table's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import DELETE_MARKER, ORDERING
from spark_app.columns.table_columns import APP_COLUMNS, DELETED, LOG_POSITION, TableColumns
from spark_app.merge.complete import complete, with_truncated_rows, without_needless
from spark_app.merge.fold import fold, fold_and_carry_forward, fold_in_buckets
from spark_app.merge.survey import Survey
from spark_app.steps.buckets import Buckets
from spark_app.table.batch_plan import BatchPlan
from spark_app.table.table_state import TableState
from spark_app.wire.decode import DELETE, TRUNCATE


@dataclass(frozen=True)
class Folded:
    """The rows that a batch applies, and the changes that it cannot apply.

    rows            one row per key (`fold.folded_type`, or its `silver_rows`)
    left_out        changes with a value that neither the batch nor the table holds, as `topic, partition,
                    offset, reason, message`; None if there can be none
    are_in_buckets  the rows are in the tasks of the table's buckets (`fold.fold_in_buckets`)
    """

    rows: DataFrame
    left_out: DataFrame | None = None
    are_in_buckets: bool = False


@dataclass(frozen=True)
class Folding:
    """Folds batches of one table.

    `stored` reads the table's rows. With `deletes_are_soft`, deleted rows stay in the table."""

    state: TableState
    stored: Callable[[], DataFrame]
    deletes_are_soft: bool

    def fold_batch(
        self, changes: DataFrame, plan: BatchPlan, survey: Survey, buckets: Buckets | None
    ) -> Folded:
        """Fold good changes (`decode.change_type`), and let a new truncate end the stored rows.

        `buckets` are the buckets that hold the changes, if any."""
        epoch = self.state.ledger.epoch
        if buckets is not None and plan.needs_each_key_alone:
            rows = fold_in_buckets(changes, buckets, survey, plan.truncate, epoch)
            return Folded(rows, are_in_buckets=True)
        folded = self.fold_changed(changes, plan, survey)
        if plan.truncate is None or not plan.ends_stored_rows or not self.state.has_table:
            return folded
        stored = self.stored()
        return replace(
            folded, rows=with_truncated_rows(folded.rows, stored, plan.columns, plan.truncate, epoch)
        )

    def fold_changed(self, changes: DataFrame, plan: BatchPlan, survey: Survey) -> Folded:
        """Fold good changes to the rows of their keys."""
        epoch = self.state.ledger.epoch
        if not plan.lacks_values:
            return Folded(fold(changes, survey, plan.truncate, epoch))
        carried = fold_and_carry_forward(changes, plan.columns, survey, plan.truncate, epoch)
        folded = without_needless(carried, plan.needed_by_deletes)
        if self.state.has_table:
            folded = complete(folded, self.stored(), plan.columns)
        is_delete = F.col("op").isin(DELETE, TRUNCATE)
        # Some deletes are of rows that the lake never had. A soft delete stays, without values. A hard one
        # has no effect.
        is_known = (F.size("missing") == 0) | (is_delete & F.lit(self.deletes_are_soft))
        return Folded(folded.where(is_known), _left_out(folded.where(~is_known & ~is_delete)))


def silver_rows(folded: DataFrame, columns: TableColumns, *, deletes_are_soft: bool) -> DataFrame:
    """Return folded rows in the form in which the table holds them.

    Columns: `APP_COLUMNS`, `_deleted` if deletes are soft, the source's columns."""
    is_deleted = F.col("op").isin(DELETE, TRUNCATE)
    operation = F.col("op") if deletes_are_soft else F.when(is_deleted, DELETE_MARKER).otherwise(F.col("op"))
    app_values = {
        "_key": F.col("key"),
        "_op": operation,
        ORDERING: F.col("seq"),
        "_source_ts": F.col("source_ts"),
        "_topic": F.col("topic"),
        "_partition": F.col("partition"),
        "_offset": F.col("offset"),
        LOG_POSITION: F.col("log_position"),
    }
    return folded.select(
        *[app_values[app.name].cast(app.dataType).alias(app.name) for app in APP_COLUMNS.fields],
        *([is_deleted.alias(DELETED)] if deletes_are_soft else []),
        *[F.col("row")[name].alias(name) for name in columns.names],
    )


def _left_out(folded: DataFrame) -> DataFrame:
    message = F.concat(
        F.lit("Neither the batch nor the table holds the unchanged value of "),
        F.concat_ws(", ", "missing"),
    )
    return folded.select(
        "topic",
        "partition",
        "offset",
        F.lit("unavailable_value").alias("reason"),
        message.alias("message"),
    )
