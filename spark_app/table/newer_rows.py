"""Keep the newer rows of a batch, for sources whose changes come in another order than they were made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import Ledger
from spark_app.merge.newer import (
    first_position,
    last_position,
    may_hold_older,
    ordered_by_time,
    stored_positions,
    without_older,
)
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import NOWHERE
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

    def of_batch(
        self, rows: DataFrame, changes: DataFrame, state: TableState, survey: Survey, name: str
    ) -> DataFrame:
        """Return the rows to apply, from a batch's folded rows (`fold.folded_type`).

        The batch's `changes` (`decode.change_type`) are held. Their deletes are remembered under the batch's
        `name`. Most batches are newer than all before them, and then nothing is looked up."""
        if self.deleted is not None:
            # What this batch looks up is read when it is written. No file of it may go until then.
            self.deleted.merge_if_many()
        ordered = ordered_by_time(rows)
        if may_hold_older(survey, state.ledger):
            ordered = self.without_older(ordered, state, first_position(survey))
        if self.deleted is not None and survey.deletes:
            deletes = changes.where(F.col("op") == DELETE).select(
                "key", F.col("log_position").alias("position")
            )
            self.deleted.remember(deletes, name, last_position(survey))
        return ordered

    def without_older(self, rows: DataFrame, state: TableState, since: bytes = NOWHERE) -> DataFrame:
        """Return the rows that are not older than the stored row or the delete of their key.

        No row is older than `since`."""
        known: list[DataFrame] = []
        if self.deleted is not None and (deleted := self.deleted.positions(since)) is not None:
            known.append(deleted)
        if state.has_table:
            known.append(stored_positions(self.stored()))
        return without_older(rows, reduce(DataFrame.unionByName, known)) if known else rows

    def forget(self) -> None:
        """Forget what is known of files that somebody else may have written."""
        if self.deleted is not None:
            self.deleted.forget()


def batch_name(before: Ledger, after: Ledger) -> str:
    """Return a name for the events between two ledgers: the same each time a batch is repeated."""
    places = (
        f"p{partition}-{before.positions.get(partition, 0)}-{until}"
        for partition, until in sorted(after.positions.items())
        if before.positions.get(partition, 0) != until
    )
    return f"e{after.epoch}-{'-'.join(places)}"
