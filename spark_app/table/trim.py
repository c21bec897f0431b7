"""Remove events from bronze: a table's old ones that it has applied, or all those of a removed table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import functions as F

from spark_app.ledger.commits import last_commit
from spark_app.reports import EventsDeleted, Trimmed
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
    held = _held(upkeep, table.topic, retention)
    return _remove_old(table.name, table.topic, upkeep, held, commit.ledger.positions)


def trim_removed(topic: str, upkeep: BronzeUpkeep, retention: timedelta) -> Trimmed:
    """Remove events that are older than `retention` and whose table was removed from the lake.

    Nobody will apply them."""
    held = _held(upkeep, topic, retention)
    return _remove_old(
        topic, topic, upkeep, held, {partition: found.last for partition, found in held.items()}
    )


def delete_events(topic: str, upkeep: BronzeUpkeep) -> EventsDeleted:
    """Delete all events of a topic, also from bronze's earlier snapshots. It can be repeated."""
    events = upkeep.events(topic).count()
    if events:
        upkeep.delete(topic)
    upkeep.expire_all_snapshots_but_one()
    return EventsDeleted(topic, events)


def _held(upkeep: BronzeUpkeep, topic: str, retention: timedelta) -> Mapping[int, HeldEvents]:
    oldest_ms = int((time.time() - retention.total_seconds()) * 1000)
    events = upkeep.events(topic)
    rows = events.groupBy("k_partition").agg(
        F.min("k_offset").alias("first"),
        F.max("k_offset").alias("last"),
        F.min(F.when(F.col("k_timestamp") >= oldest_ms, F.col("k_offset"))).alias("first_young"),
    )
    return {
        row["k_partition"]: HeldEvents(row["first"], row["last"], row["first_young"])
        for row in rows.collect()
    }


def _remove_old(
    name: str,
    topic: str,
    upkeep: BronzeUpkeep,
    held: Mapping[int, HeldEvents],
    positions: Mapping[int, int],
) -> Trimmed:
    kept = first_kept(held, positions)
    upkeep.remove_before(topic, kept)
    removed = sum(offset - held[partition].first for partition, offset in kept.items())
    return Trimmed(name, removed, kept)
