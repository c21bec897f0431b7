"""Positions in SQL Server's change tables."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.positions.source_log import NOWHERE

_FIELDS = StructType(
    [
        StructField("commit_lsn", StringType()),
        StructField("change_lsn", StringType()),
        StructField("event_serial_no", LongType()),
    ]
)
_LSN_BYTES = 10


@dataclass(frozen=True)
class ChangeTables:
    """Positions of SQL Server: the LSN of a transaction's commit, the LSN of the change, and a count.

    An LSN has ten bytes, which Debezium writes as `00000027:00000ac0:0002`. The count, `event_serial_no`,
    tells rows with the same two LSNs apart; an update counts as two
    (io.debezium.connector.sqlserver.SourceInfo).

    Only the commit's LSN orders the stream. Within a transaction, Debezium sends the changes in the order of
    `__$command_id`, which its events do not have. An update of several keys deletes all old rows before it
    inserts the new ones, and both can have the same LSNs, so the LSN of a change goes back."""

    @property
    def fields(self) -> StructType:
        return _FIELDS

    @property
    def own_names(self) -> tuple[str, ...]:
        return ("commit_lsn", "change_lsn", "event_serial_no")

    @property
    def required(self) -> tuple[str, ...]:
        return ("commit_lsn", "change_lsn", "event_serial_no")

    @property
    def keeps_order(self) -> bool:
        return True

    @property
    def shares_positions(self) -> bool:
        return True

    @property
    def isolates_moves(self) -> bool:
        return False

    def position(self, source: Column) -> Column:
        return F.coalesce(_bytes(source["commit_lsn"]), F.lit(NOWHERE))

    def log_position(self, source: Column) -> Column:
        # The reads of a snapshot have no LSN of a change. They saw all of their transaction.
        change = F.coalesce(_bytes(source["change_lsn"]), F.lit(b"\xff" * _LSN_BYTES))
        count = F.coalesce(source["event_serial_no"], F.lit(0)).cast("bigint").cast("binary")
        return F.coalesce(F.concat(_bytes(source["commit_lsn"]), change, count), F.lit(NOWHERE))


def _bytes(lsn: Column) -> Column:
    """Return an LSN's bytes, or null if the text is none, such as `NULL`."""
    found = F.unhex(F.replace(lsn, F.lit(":"), F.lit("")))
    return F.when(F.length(found) == _LSN_BYTES, found)
