"""Keep bronze small: remove old events, merge small files, and remove snapshots and files without a use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from spark_app.reports import BronzeServiced, ProgressWriter, Stopped, Trimmed
from spark_app.run.outcome import OutcomeStore
from spark_app.run.table_task import run_for_each_table
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import EventSource
from spark_app.table.table_ingest import TableIngest
from spark_app.table.trim import trim_removed, trim_table

ORPHANS_AFTER = timedelta(days=3)
"""A writer commits its files some seconds after it has begun them."""


@dataclass(frozen=True)
class BronzeTables:
    """The tables that together are bronze.

    source     has the events of all of them
    existing   the tables that exist
    of_topic   returns the table with a topic's events
    """

    source: EventSource
    existing: Sequence[BronzeUpkeep]
    of_topic: Callable[[str], BronzeUpkeep]


def maintain(
    bronze: BronzeTables,
    table_of: Callable[[str], TableIngest | None],
    retention: timedelta | None,
    progress: ProgressWriter,
    outcomes: OutcomeStore,
    removed: frozenset[str] = frozenset(),
) -> bool:
    """Run all of it once, and return whether it succeeded for all tables. The writers keep running.

    Without a `retention`, all events stay. `removed` are the topics of tables that the lake has no more.
    """
    is_well, topics = True, bronze.source.topics()
    if not topics:
        progress.write(Stopped({}))
        return is_well
    if retention is not None:

        def trim(table: TableIngest) -> Trimmed:
            return trim_table(table, bronze.of_topic(table.topic), retention)

        def kept_table_of(topic: str) -> TableIngest | None:
            return None if topic in removed else table_of(topic)

        is_well = run_for_each_table(bronze.source, kept_table_of, trim, progress, outcomes)
        for topic in sorted(removed & topics):
            progress.write(trim_removed(topic, bronze.of_topic(topic), retention))
    for upkeep in bronze.existing:
        progress.write(_serve(upkeep))
    return is_well


def _serve(upkeep: BronzeUpkeep) -> BronzeServiced:
    started = time.monotonic()
    merged = upkeep.merge_small_files()
    expired = upkeep.expire_snapshots()
    orphans = upkeep.remove_orphans(ORPHANS_AFTER)
    name = upkeep.table.rpartition(".")[2]
    return BronzeServiced(name, merged, expired, orphans, round(time.monotonic() - started, 3))
