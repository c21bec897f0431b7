"""Remove a table's old events from bronze, but none that the table has yet to apply."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import functions as F

from spark_app.ledger.commits import last_commit
from spark_app.reports import Trimmed
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.table.table_ingest import TableIngest


@dataclass(frozen=True)
class HeldEvents:
    """The events of a partition in bronze: the first and the last offset, and the first of a young event.

    first_young  None: all events are old
    """

    first: int
    last: int
    first_young: int | None


def first_kept(held: Mapping[int, HeldEvents], positions: Mapping[int, int]) -> Mapping[int, int]:
    """Return, for each partition of which events go, the first offset that stays.

    `positions` are the table's next offsets. All events before that offset are old and applied. The last
    event always stays, so bronze still tells how far it reaches. A partition loses events only at its
    beginning, so a rebuild sees that they are gone.
    """
    kept = {}
    for partition, found in held.items():
        until = found.last if found.first_young is None else found.first_young
        until = min(until, positions.get(partition, 0))
        if until > found.first:
            kept[partition] = until
    return kept


def trim_table(table: TableIngest, upkeep: BronzeUpkeep, retention: timedelta) -> Trimmed:
    """Remove the table's events that are older than `retention` from bronze.

    It only reads the table, so another run may write to it. A topic that was recreated keeps all events,
    because its offsets do not tell old events from new ones.
    """
    commit = last_commit(table.hudi)
    if commit is None or commit.ledger.epoch > 0:
        return Trimmed(table.name, 0, {})
    oldest_ms = int((time.time() - retention.total_seconds()) * 1000)
    events = upkeep.events(table.topic)
    rows = events.groupBy("k_partition").agg(
        F.min("k_offset").alias("first"),
        F.max("k_offset").alias("last"),
        F.min(F.when(F.col("k_timestamp") >= oldest_ms, F.col("k_offset"))).alias("first_young"),
    )
    held = {
        row["k_partition"]: HeldEvents(row["first"], row["last"], row["first_young"])
        for row in rows.collect()
    }
    kept = first_kept(held, commit.ledger.positions)
    upkeep.remove_before(table.topic, kept)
    removed = sum(offset - held[partition].first for partition, offset in kept.items())
    return Trimmed(table.name, removed, kept)
