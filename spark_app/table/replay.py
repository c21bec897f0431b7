"""Replay: apply quarantined events that have become readable, at their place among later events."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.hudi.spread import ManyRows
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.ledger.topic_checks import check_replayable, check_topic
from spark_app.merge.newer import ordered_by_time
from spark_app.merge.survey import survey_changes
from spark_app.reports import Replayed
from spark_app.sources.event import OffsetRange
from spark_app.table.batch_mode import Merging
from spark_app.table.batch_plan import plan_batch
from spark_app.table.decoding import DecodedBatch, Decoding
from spark_app.table.folding import Folding, silver_rows
from spark_app.table.quarantine import read_quarantine, replace_quarantine
from spark_app.table.table_ingest import TableIngest
from spark_app.table.table_state import TableState
from spark_app.wire.decode import TRUNCATE

_POSITION = ("topic", "partition", "offset")


def replay_table(table: TableIngest) -> Replayed:
    """Apply the quarantined events that can be read now.

    Everything that the source has sent since then for the keys of these events is folded again, so that an
    old event does not undo a newer one. Raises `PositionLost` if the source does not hold all these events.
    """
    state, parts = table.state, table.parts
    found = read_quarantine(table.hudi.spark, table.quarantine_path, state.ledger.epoch)
    if found is None or not state.has_table:
        return Replayed(table.name, applied=0, left=0 if found is None else found[0].count())
    quarantined_events, folders = found
    ranges = _since(quarantined_events, state.ledger)
    if not ranges:
        # A crash came between the quarantine and its commit. The next batch brings these events again.
        return Replayed(table.name, applied=0, left=quarantined_events.count())
    extent = parts.reader.extent()
    extent.check()
    check_topic(state.ledger, extent)
    check_replayable(table.topic, ranges, extent)
    events = table.source.read(table.topic, ranges)
    parts.versions.learn(events)
    mode = Merging(table.hudi, parts.commits, state, parts.log.keeps_order)
    decoding = Decoding(parts.versions, mode, state.ledger, parts.log, table.source.keeps_headers)
    with decoding.held(events) as batch:
        fold = _fold_again(table, batch, quarantined_events)
        applied = fold.readable.count()
        if applied:
            _commit(table, fold.rows)
        left = quarantined_events.join(fold.readable, list(_POSITION), "left_anti")
        left_count = left.count()
        if applied:
            name = f"e{state.ledger.epoch}-replayed-{time.time_ns()}"
            replace_quarantine(left, table.quarantine_path, name, folders)
    return Replayed(table.name, applied, left_count)


@dataclass(frozen=True)
class _FoldedAgain:
    """The quarantined events that are `readable` now, as changes, and the silver `rows` of their keys."""

    readable: DataFrame
    rows: DataFrame


def _fold_again(table: TableIngest, batch: DecodedBatch, quarantined_events: DataFrame) -> _FoldedAgain:
    good = batch.changes.where(F.col("reason").isNull())
    readable = good.join(quarantined_events, list(_POSITION), "left_semi")
    keys = _with_moved(readable, good)
    theirs = good.where(F.col("key").isin(*keys) | (F.col("op") == TRUNCATE))
    ledger = table.state.ledger
    nothing_applied = Ledger(table.topic, epoch=ledger.epoch, truncate=ledger.truncate)
    survey = survey_changes(theirs, nothing_applied)
    state = TableState(nothing_applied, table.columns)
    plan = plan_batch(state, table.hudi.policy, survey, batch.columns)
    is_soft = table.parts.deletes_are_soft
    folded = Folding(state, table.hudi.read, is_soft).fold_changed(theirs, plan, survey)
    if folded.left_out is not None:
        readable = readable.join(folded.left_out, list(_POSITION), "left_anti")
    newer = table.parts.newer
    newest = folded.rows
    if newer is not None:
        newest = newer.without_older(ordered_by_time(newest), table.state)
    rows = silver_rows(newest, batch.columns, deletes_are_soft=is_soft)
    return _FoldedAgain(readable, rows)


def _commit(table: TableIngest, rows: DataFrame) -> None:
    table.check_timeline()
    ledger = table.ledger.next_commit()
    table.hudi.upsert(rows, commit_metadata(ledger), ManyRows(ledger.events))
    table.parts.commits.find(ledger)


def _since(quarantined_events: DataFrame, ledger: Ledger) -> tuple[OffsetRange, ...]:
    """Return the ranges from each partition's first quarantined event to the table's position."""
    firsts = quarantined_events.groupBy("partition").agg(F.min("offset").alias("first")).collect()
    ranges = (
        OffsetRange(r["partition"], r["first"], ledger.positions.get(r["partition"], 0)) for r in firsts
    )
    return tuple(r for r in ranges if r.length > 0)


def _with_moved(readable: DataFrame, good: DataFrame) -> frozenset[str]:
    """Return the keys of the readable events, and all other keys that their rows have had in the source."""
    with_key = readable.where(F.col("key").isNotNull())
    keys = {row["key"] for row in with_key.select("key").distinct().collect()}
    moved = good.where(F.col("moved_from").isNotNull()).select("moved_from", "key").distinct()
    return _connected(keys, [(row[0], row[1]) for row in moved.collect()])


def _connected(keys: set[str], moves: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the keys, and all keys that moves connect with them, directly or indirectly."""
    pairs = list(moves)
    while more := {key for pair in pairs if keys & set(pair) for key in pair} - keys:
        keys = keys | more
    return frozenset(keys)
