"""The app's knowledge of a table between two commits."""

from __future__ import annotations

from dataclasses import dataclass

from spark_app.columns.table_columns import TableColumns
from spark_app.ledger.ledger import Ledger


@dataclass(frozen=True)
class TableState:
    """The table as of its last commit with a ledger.

    `columns` are the source's columns of the table; None if there is no table yet. `partitions_written` are
    the paths of the partitions that the last commit wrote to."""

    ledger: Ledger
    columns: TableColumns | None = None
    partitions_written: frozenset[str] = frozenset()

    @property
    def has_table(self) -> bool:
        return self.columns is not None
