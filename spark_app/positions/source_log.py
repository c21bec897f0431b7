"""The position of a change in its engine's log, as bytes that sort."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

NOWHERE = b""
"""The position of a change that does not say where in the log it is. It sorts before all others."""


class SourceLog(Protocol):
    """Reads the positions of an engine's changes.

    A position is `binary`. Spark, Java and Python compare bytes from the first on, as unsigned numbers. So an
    engine writes numbers with a fixed length and the highest byte first."""

    @property
    def keeps_order(self) -> bool:
        """Return whether a partition brings the changes of a key in the order of their positions.

        If not, a change can come after newer ones, even after that of a deleted row."""

    @property
    def fields(self) -> StructType:
        """The fields of an envelope's `source` that give the position, besides the fields of all engines."""

    @property
    def own_names(self) -> tuple[str, ...]:
        """All fields that only this engine's `source` has. `ExtractNewRecordState` can add them to a row."""

    @property
    def required(self) -> tuple[str, ...]:
        """The `fields` that an unwrapped row must have to give its position."""

    @property
    def isolates_moves(self) -> bool:
        """Return whether the two halves of a changed primary key share a position of their own."""

    @property
    def shares_positions(self) -> bool:
        """Return whether all changes of a transaction share a position, in a stream that keeps the order."""

    def position(self, source: Column) -> Column:
        """Return a change's place in the order in which Debezium streams, `binary`, never null.

        `source` is a struct with at least `fields`. A change that Debezium sends again keeps its position.
        Positions sort in the order of the stream."""

    def __hash__(self) -> int: ...

    def log_position(self, source: Column) -> Column:
        """Return where in the log a change was written, `binary`, never null.

        All reads of a snapshot have the place that the log had reached when the snapshot began. So this order
        also holds across partitions, and between snapshots and the stream. It equals the position where an
        engine streams transactions in the order in which it wrote them."""


def is_known(position: Column) -> Column:
    """Return whether the position of a change is known."""
    return F.length(position) > 0
