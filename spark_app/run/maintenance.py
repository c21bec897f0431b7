"""Keep bronze small: remove old events, merge small files, and remove snapshots and files without a use."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from spark_app.reports import BronzeServiced, ProgressWriter, Stopped
from spark_app.run.outcome import OutcomeStore
from spark_app.run.table_task import run_for_each_table
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.table.table_ingest import TableIngest
from spark_app.table.trim import trim_removed, trim_table

ORPHANS_AFTER = timedelta(days=3)
"""The sink commits its files some seconds after it has begun them."""


def maintain(
    source: BronzeSource,
    table_of: Callable[[str], TableIngest | None],
    retention: timedelta | None,
    progress: ProgressWriter,
    outcomes: OutcomeStore,
    removed: frozenset[str] = frozenset(),
) -> bool:
    """Run all of it once, and return whether it succeeded for all tables. The sink keeps writing meanwhile.

    Without a `retention`, all events stay. `removed` are the topics of tables that the lake has no more.
    """
    upkeep, started = BronzeUpkeep(source.spark, source.table), time.monotonic()
    is_well = True
    if not source.topics():
        progress.write(Stopped({}))
        return is_well
    if retention is not None:
        trim = partial(trim_table, upkeep=upkeep, retention=retention)
        is_well = run_for_each_table(
            source, lambda topic: None if topic in removed else table_of(topic), trim, progress, outcomes
        )
        for topic in sorted(removed & source.topics()):
            progress.write(trim_removed(topic, upkeep, retention))
    merged = upkeep.merge_small_files()
    expired = upkeep.expire_snapshots()
    orphans = upkeep.remove_orphans(ORPHANS_AFTER)
    progress.write(BronzeServiced(merged, expired, orphans, round(time.monotonic() - started, 3)))
    return is_well
