"""How a batch gets into a table: merged into its rows, or in place of all its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from spark_app.columns.retyping import in_type
from spark_app.columns.table_columns import (
    APP_COLUMNS,
    DELETED,
    TableColumns,
    columns_of_table,
)
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.reader_limits import hides_arrays
from spark_app.hudi.spread import FewRows, ManyRows, RowsInBuckets, Spread
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.merge.order import without_applied
from spark_app.merge.survey import Survey
from spark_app.steps.buckets import Buckets
from spark_app.table.batch_plan import is_work_of_one_task
from spark_app.table.folding import Folded
from spark_app.table.known_commits import KnownCommits
from spark_app.table.table_state import TableState
from spark_app.wire.schemas import Schemas


class BatchMode(Protocol):
    """The differences between applying a batch to a table and rebuilding a table from a batch."""

    def columns(self, versions: Schemas) -> TableColumns | None:
        """Return the columns that the table must have for these versions; None if no key is known."""

    def buckets(self, events: int) -> Buckets | None:
        """Return the buckets in which to hold a batch of this many events, if any."""

    def to_apply(self, changes: DataFrame, survey: Survey) -> DataFrame:
        """Return the good changes that the table is to get."""

    def recorded(self, ledger: Ledger) -> Ledger:
        """Return the ledger to record in the commit, from the batch's ledger."""

    def retype(self, columns: TableColumns, retyped: tuple[str, ...]) -> None:
        """Give columns that the table holds in another type the types that they have in `columns`."""

    def commit(self, folded: Folded, ledger: Ledger) -> None:
        """Write the rows (`silver_rows`) and the ledger in one commit."""


@dataclass(frozen=True)
class Merging:
    """Merges a batch into the table that `state` describes. Creates the table if there is none.

    keeps_order  whether the source keeps the order of a key's changes (`SourceLog.keeps_order`)
    """

    hudi: HudiTable
    commits: KnownCommits
    state: TableState
    keeps_order: bool = True

    def columns(self, versions: Schemas) -> TableColumns | None:
        return versions.columns(self.state.columns)

    def buckets(self, events: int) -> Buckets | None:
        return self.hudi.buckets(events)

    def to_apply(self, changes: DataFrame, survey: Survey) -> DataFrame:
        return without_applied(changes, self.state.ledger, survey) if self.keeps_order else changes

    def recorded(self, ledger: Ledger) -> Ledger:
        return ledger

    def retype(self, columns: TableColumns, retyped: tuple[str, ...]) -> None:
        """Rewrite the stored rows in a separate commit, so that no file keeps another type.

        Hudi refuses to write wider decimals next to narrower ones. And each reader would convert a float to a
        double in its own way."""
        stored = self.hudi.read()
        own = [name for name in (*APP_COLUMNS.fieldNames(), DELETED) if name in stored.columns]
        rows = stored.select(
            *own,
            *[
                in_type(stored, name, data_type).alias(name)
                for name, data_type in columns.row
                if name in stored.columns
            ],
        )
        self.commits.replace_all(rows, self.state.ledger, retyped)

    def commit(self, folded: Folded, ledger: Ledger) -> None:
        """Write the rows and the ledger in one commit. Raises `AnotherWriter` and `ClockIsBehind`."""
        is_there = self.state.has_table
        self.commits.check(is_there=is_there)
        if self._hides_arrays(folded.rows):
            self.hudi.compact()
            self.commits.check(is_there=is_there)
        write = self.hudi.upsert if is_there else self.hudi.write
        write(folded.rows, commit_metadata(ledger), self._spread(folded, ledger))

    def _spread(self, folded: Folded, ledger: Ledger) -> Spread:
        if folded.are_in_buckets:
            return RowsInBuckets()
        # A new truncate deletes as many rows as the table has.
        if is_work_of_one_task(ledger.events) and ledger.truncate == self.state.ledger.truncate:
            return FewRows()
        return ManyRows(ledger.events)

    def _hides_arrays(self, rows: DataFrame) -> bool:
        """Return whether hudi-rs could not read the arrays in the table's log files after these rows."""
        columns = self.state.columns
        if columns is None or self.hudi.policy.storage != "merge_on_read":
            return False
        return hides_arrays(columns.row_type, columns_of_table(rows.schema, columns.key).names)
