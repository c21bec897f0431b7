"""Keep the newer rows of a batch, for sources whose changes come in another order than they were made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import Ledger
from spark_app.merge.newer import (
    first_position,
    last_position,
    may_hold_older,
    newest_of_keys,
    ordered_by_time,
    stored_positions,
    without_keys,
    without_older,
)
from spark_app.merge.recent_positions import RecentPositions
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import NOWHERE
from spark_app.sources.event import EVENTS_OF_ONE_TASK
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.table_state import TableState
from spark_app.wire.decode import DELETE


@dataclass
class NewerRows:
    """Leaves out rows of one table that are older than what it holds.

    stored   reads the table's rows
    deleted  its deleted keys; None if deleted rows stay in the table
    """

    stored: Callable[[], DataFrame]
    deleted: DeletedKeys | None
    _recent: RecentPositions | None = field(default=None, init=False)

    def of_batch(
        self, rows: DataFrame, changes: DataFrame, state: TableState, survey: Survey, name: str
    ) -> DataFrame:
        """Return the rows to apply, from a batch's folded rows (`fold.folded_type`).

        The batch's `changes` (`decode.change_type`) are held. Their deletes are remembered under the batch's
        `name`. One Spark job for the keys of a small batch, and one for its deletes."""
        if self.deleted is not None:
            # What this batch looks up is read when it is written. No file of it may go until then.
            self.deleted.merge_if_many()
        ordered = self._newer(ordered_by_time(rows), changes, state, survey)
        if self.deleted is not None and survey.deletes:
            is_delete = F.col("op") == DELETE
            deletes = changes.where(is_delete).select("key", F.col("log_position").alias("position"))
            self.deleted.remember(deletes, name, last_position(survey))
        return ordered

    def _newer(self, rows: DataFrame, changes: DataFrame, state: TableState, survey: Survey) -> DataFrame:
        """Compare with what changed lately, if that is enough; otherwise with the table and its deletes."""
        first = first_position(survey)
        recent = self._recent or RecentPositions(max(state.ledger.applied.values(), default=NOWHERE))
        are_few = survey.changes <= EVENTS_OF_ONE_TASK
        newest = newest_of_keys(changes) if are_few else {}
        if recent.knows(first) and are_few:
            rows = without_keys(rows, recent.later(newest))
        elif may_hold_older(survey, state.ledger):
            rows = self.without_older(rows, state, first)
        recent.add(newest)
        # The ledger has the newest position of a large batch, but nobody has the keys.
        self._recent = recent if are_few else None
        return rows

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
        """Forget what a failed commit, or somebody else, may have made wrong."""
        self._recent = None
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
