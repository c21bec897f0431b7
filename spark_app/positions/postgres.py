"""Positions in PostgreSQL's write-ahead log."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_app.positions.source_log import NOWHERE

_FIELDS = StructType([StructField("sequence", StringType()), StructField("lsn", LongType())])


@dataclass(frozen=True)
class PostgresLog:
    """Positions of PostgreSQL: two LSNs of eight bytes each.

    The first is the LSN of the last commit before the change's transaction, the second the change's own. Both
    are in Debezium's `source.sequence` (io.debezium.connector.postgresql.SourceInfo#sequence). The change's
    own LSN does not give the order of the stream: PostgreSQL streams concurrent transactions one after the
    other."""

    @property
    def keeps_order(self) -> bool:
        return True

    @property
    def fields(self) -> StructType:
        return _FIELDS

    @property
    def own_names(self) -> tuple[str, ...]:
        return ("txId", "lsn", "xmin", "origin", "origin_lsn")

    @property
    def required(self) -> tuple[str, ...]:
        return ("sequence",)

    @property
    def shares_positions(self) -> bool:
        return False

    @property
    def isolates_moves(self) -> bool:
        return True

    def position(self, source: Column) -> Column:
        own = _own(source)
        # No commit that Debezium knows precedes the first transaction after a snapshot.
        return _where_known(own, F.concat(_bytes(F.coalesce(_last_commit(source), own)), _bytes(own)))

    def log_position(self, source: Column) -> Column:
        own = _own(source)
        return _where_known(own, _bytes(own))


def _own(source: Column) -> Column:
    """Return the change's LSN, `bigint`: the field `lsn`, or the last number of `["24023119","24023128"]`."""
    text = source["sequence"]
    last = F.substring_index(F.substring_index(text, '"', -2), '"', 1)
    return F.coalesce(source["lsn"], F.when(text.endswith('"]'), last.cast("bigint")))


def _last_commit(source: Column) -> Column:
    """Return the first number of `["24023119","24023128"]`, `bigint`; null for `[null,"24023128"]`."""
    text = source["sequence"]
    first = F.substring_index(F.substring_index(text, '"', 2), '"', -1)
    return F.when(text.startswith('["'), first.cast("bigint"))


def _where_known(lsn: Column, position: Column) -> Column:
    return F.when(lsn > 0, position).otherwise(F.lit(NOWHERE))


def _bytes(number: Column) -> Column:
    """Return the number as eight bytes, the highest first."""
    return number.cast("binary")
