"""Keep the newer rows of a batch, for sources whose changes come in another order than they were made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import Ledger
from spark_app.merge.newer import may_hold_older, ordered_by_time, stored_positions, without_older
from spark_app.merge.survey import Survey
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.table_state import TableState
from spark_app.wire.decode import DELETE


@dataclass(frozen=True)
class NewerRows:
    """Leaves out rows of one table that are older than what it holds.

    stored   reads the table's rows
    deleted  its deleted keys; None if deleted rows stay in the table
    """

    stored: Callable[[], DataFrame]
    deleted: DeletedKeys | None

    def of_batch(self, rows: DataFrame, state: TableState, survey: Survey, name: str) -> DataFrame:
        """Return the rows to apply, from a batch's folded rows (`fold.folded_type`).

        `name` is the batch's. Its deletes are remembered under that name. Most batches are newer than all
        before them, and then nothing is looked up."""
        ordered = ordered_by_time(rows)
        if may_hold_older(survey, state.ledger):
            ordered = self.without_older(ordered, state)
        self._remember(ordered, name)
        return ordered

    def without_older(self, rows: DataFrame, state: TableState) -> DataFrame:
        """Return the rows that are not older than the stored row or the delete of their key."""
        known: list[DataFrame] = []
        if self.deleted is not None and (deleted := self.deleted.positions()) is not None:
            known.append(deleted)
        if state.has_table:
            known.append(stored_positions(self.stored()))
        return without_older(rows, reduce(DataFrame.unionByName, known)) if known else rows

    def _remember(self, rows: DataFrame, name: str) -> None:
        if self.deleted is not None:
            is_delete = F.col("op") == DELETE
            deleted = rows.where(is_delete).select("key", F.col("log_position").alias("position"))
            self.deleted.remember(deleted, name)


def batch_name(before: Ledger, after: Ledger) -> str:
    """Return a name for the events between two ledgers: the same each time a batch is repeated."""
    places = (
        f"p{partition}-{before.positions.get(partition, 0)}-{until}"
        for partition, until in sorted(after.positions.items())
        if before.positions.get(partition, 0) != until
    )
    return f"e{after.epoch}-{'-'.join(places)}"
