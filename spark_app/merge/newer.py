"""Keep the newer: leave out rows that are older than what the table holds or has deleted.

Only a source that brings the changes of a key in another order than it made them needs this
(`SourceLog.keeps_order`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.columns.table_columns import LOG_POSITION
from spark_app.ledger.ledger import Ledger
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import NOWHERE


def may_hold_older(survey: Survey, ledger: Ledger) -> bool:
    """Return whether some change can be older than one that was applied, of whatever key."""
    return first_position(survey) <= max(ledger.applied.values(), default=NOWHERE)


def first_position(survey: Survey) -> bytes:
    """Return a position that is not higher than that of any change."""
    firsts = (found.first_log_position for found in survey.partitions.values())
    return min((first for first in firsts if first is not None), default=NOWHERE)


def last_position(survey: Survey) -> bytes | None:
    """Return a position that is not lower than that of any change; None if the survey does not tell."""
    partitions = survey.partitions.values()
    if any(found.snapshots for found in partitions):
        return None
    return max((found.last.position for found in partitions if found.last is not None), default=None)


def newest_of_keys(changes: DataFrame) -> Mapping[str, bytes]:
    """Return the newest position of each key in a small batch of changes. One Spark job."""
    newest: dict[str, bytes] = {}
    for row in changes.select("key", "log_position").collect():
        position = bytes(row["log_position"])
        newest[row["key"]] = max(position, newest.get(row["key"], position))
    return newest


def without_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the folded rows of all other keys."""
    if not keys:
        return rows
    # Spark compiles a query with a list of values once, whatever the values are.
    return rows.where(~F.array_contains(F.lit(list(keys)), F.col("key")))


def stored_positions(stored: DataFrame) -> DataFrame:
    """Return `key, position` of the table's rows."""
    return stored.select(
        F.col(RECORD_KEY).alias("key"), F.coalesce(LOG_POSITION, F.lit(NOWHERE)).alias("position")
    )


def without_older(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Return the folded rows (`fold.folded_type`) that are not older than what is known of their keys.

    `known` has the columns `key, position`, and may have several rows of a key. A row at exactly the known
    position stays: it is the same change, which a batch repeats after a crash."""
    wanted = F.broadcast(rows.select(F.col("key").alias("wanted_key")))
    of_rows = known.join(wanted, F.col("key") == F.col("wanted_key"), "left_semi")
    newest = of_rows.groupBy(F.col("key").alias("known_key")).agg(F.max("position").alias("known_position"))
    is_current = F.col("known_key").isNull() | (F.col("log_position") >= F.col("known_position"))
    joined = rows.join(F.broadcast(newest), F.col("key") == F.col("known_key"), "left")
    return joined.where(is_current).select(*rows.columns)


def ordered_by_time(rows: DataFrame) -> DataFrame:
    """Return the folded rows with their time as `seq`.

    Hudi keeps the row with the higher `_seq`. Offsets of two partitions cannot be compared, and a key can go
    from one to another."""
    by_time = F.unix_micros("source_ts")
    return rows.select(*[by_time.alias(name) if name == "seq" else F.col(name) for name in rows.columns])
