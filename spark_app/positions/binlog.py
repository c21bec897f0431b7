"""Positions in the binary log of MySQL and MariaDB."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from spark_app.positions.source_log import NOWHERE

_FIELDS = StructType(
    [
        StructField("file", StringType()),
        StructField("pos", LongType()),
        StructField("row", IntegerType()),
        StructField("sequence", StringType()),
    ]
)

_NUMBERED = 2**62
"""Sorts the positions by numbers of transactions behind those by files of the log."""


@dataclass(frozen=True)
class BinaryLog:
    """Positions of MySQL and MariaDB: the number of the transaction, the byte in it, and the row of an event.

    The server writes a transaction as a whole when it commits, so the log has the order of the commits. An
    event holds several rows (io.debezium.connector.binlog.BinlogSourceInfo).

    With MySQL's GTIDs, our transform TransactionNumbers writes the number and the byte to `sequence`. They
    are the same on each server that has the transaction. Without, a position is the number of the log's file
    and the byte in it, which sorts before all transactions with a number."""

    @property
    def keeps_order(self) -> bool:
        return True

    @property
    def fields(self) -> StructType:
        return _FIELDS

    @property
    def own_names(self) -> tuple[str, ...]:
        return ("server_id", "gtid", "file", "pos", "row", "thread", "query")

    @property
    def required(self) -> tuple[str, ...]:
        return ("file", "pos", "row")

    @property
    def shares_positions(self) -> bool:
        return False

    @property
    def isolates_moves(self) -> bool:
        return True

    def position(self, source: Column) -> Column:
        file = F.substring_index(source["file"], ".", -1).cast("bigint")
        row = F.coalesce(source["row"], F.lit(0))
        place = F.concat(_bytes(file), _bytes(source["pos"]), _bytes(row))
        number = F.substring_index(source["sequence"], ":", 1).cast("bigint") + _NUMBERED
        byte = F.substring_index(source["sequence"], ":", -1).cast("bigint")
        numbered = F.concat(_bytes(number), _bytes(byte), _bytes(row))
        return F.coalesce(numbered, F.when(file > 0, place), F.lit(NOWHERE))

    def log_position(self, source: Column) -> Column:
        return self.position(source)


def _bytes(number: Column) -> Column:
    """Return the number as eight or four bytes, the highest first."""
    return number.cast("binary")
