"""The position of a change in its engine's log, as bytes that sort."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

NOWHERE = b""
"""The position of a change that does not tell where in the log it stands. It comes before all others."""


class SourceLog(Protocol):
    """Reads positions of an engine's changes.

    A position is `binary`. Spark, Java and Python compare bytes from the first on, as unsigned numbers, so an
    engine writes numbers with a fixed length and the highest byte first."""

    @property
    def fields(self) -> StructType:
        """The fields of an envelope's `source` that tell the position, beside those that all engines have."""

    @property
    def own_names(self) -> tuple[str, ...]:
        """All fields that only this engine's `source` has. `ExtractNewRecordState` can add them to a row."""

    @property
    def required(self) -> tuple[str, ...]:
        """The `fields` without which an unwrapped row does not tell its position."""

    def position(self, source: Column) -> Column:
        """Return where a change stands in the order in which Debezium streams, `binary`, never null.

        `source` is a struct with at least `fields`. A change that Debezium sends again has the position that
        it had. The order of positions is the order of the stream."""

    def __hash__(self) -> int: ...

    def log_position(self, source: Column) -> Column:
        """Return where in the log a change was written, `binary`, never null.

        All reads of a snapshot have the place that the log had reached when the snapshot began. So this
        order also holds between partitions, and between snapshots and the stream. Where transactions are
        streamed as they were written, it is the position."""


def is_known(position: Column) -> Column:
    """Return whether a change told its position."""
    return F.length(position) > 0
