"""The rebuild: one commit replaces a table's rows by those that follow from all its events."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION
from spark_app.columns.table_columns import TableColumns, columns_of_table
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.timeline import Timeline
from spark_app.ledger.commits import replacement_metadata
from spark_app.ledger.ledger import AppliedSnapshot, Ledger, LedgerError
from spark_app.ledger.topic_checks import PositionLost
from spark_app.merge.gone_rows import as_deleted, is_gone
from spark_app.merge.order import without_applied
from spark_app.merge.snapshots import LastSnapshot, is_since_last_snapshot, read_last_snapshot
from spark_app.merge.survey import Survey
from spark_app.reports import Committed
from spark_app.sources.event import OffsetRange, positions_text
from spark_app.table.batch import BatchApplier, TableParts
from spark_app.table.folding import Folded
from spark_app.table.known_commits import KnownCommits
from spark_app.table.quarantine import read_quarantine, remove_quarantine
from spark_app.table.setting_aside import SettingAside
from spark_app.table.table_ingest import TableIngest
from spark_app.table.table_state import TableState
from spark_app.table.topic_reader import TopicReader
from spark_app.wire.schemas import Schemas
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import ShowQuarantine, TakeSnapshot

PATIENCE_SECONDS = 120.0
"""How long to wait for the sink, which lands events some seconds after they are in Kafka."""

_SECONDS_BETWEEN_LOOKS = 2.0


class NotRebuilt(TributaryError):
    """The table cannot be rebuilt now. It is unchanged."""


def rebuild_table(
    table: TableIngest, *, since_snapshot: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> Committed:
    """Replace the rows of the table by those that follow from all events of its source, in one commit.

    With `since_snapshot`, only the events since the last snapshot count, which has read all rows. Nothing
    else may write to the table meanwhile. The new rows are up to date with the position that the table had
    reached, or with a later one, and the next ingest continues there. A column whose type has changed gets a
    type that holds all its values. Quarantined events that still cannot be applied stay in quarantine. Raises
    `NotRebuilt`, `PositionLost` and what `TableIngest.apply` raises; the table is then unchanged."""
    before = _ledger_of(table)
    if before.epoch > 0:
        raise NotRebuilt(
            what="The table's topic was recreated once, so no source has all of its events in one order",
            where=f"topic {table.topic}",
            found=f"epoch {before.epoch}",
            remedy=["Remove the table's folder in silver, and take a new snapshot.", TakeSnapshot()],
        )
    ranges = _all_ranges(table, before, patience_seconds, since_snapshot=since_snapshot)
    timeline = table.hudi.timeline()
    mode = _Replacing(
        name=table.name,
        hudi=table.hudi,
        replaced=before,
        replaced_columns=table.columns,
        replaced_instant=timeline.last_instant,
        select=partial(_since_last_snapshot, table.topic) if since_snapshot else _all_changes,
    )
    quarantine = read_quarantine(table.hudi.spark, table.quarantine_path, before.epoch)
    new_state = TableState(Ledger(table.topic, topic_id=before.topic_id, buckets=table.hudi.policy.buckets))
    applied = BatchApplier(_parts_anew(table, timeline), new_state, mode).apply(ranges)
    if applied.report is None:
        raise NotRebuilt(
            what="No event of the table can be read",
            where=f"topic {table.topic}",
            remedy=ShowQuarantine(),
        )
    if quarantine is not None:
        new = applied.quarantine_folder
        kept = None if new is None else new.rpartition("/")[2]
        old = [folder for folder in quarantine[1] if folder.rpartition("/")[2] != kept]
        remove_quarantine(table.hudi.spark, old)
    table.forget()
    return applied.report


def _ledger_of(table: TableIngest) -> Ledger:
    """Return the table's ledger, or an empty one if it cannot be read. Such a table can be rebuilt, too."""
    try:
        table.recover()
        return table.ledger
    except LedgerError:
        return Ledger(table.topic)


def _all_ranges(
    table: TableIngest, before: Ledger, patience_seconds: float, *, since_snapshot: bool
) -> tuple[OffsetRange, ...]:
    """Return the ranges from the topic's first event to the last one that the source holds.

    If the source no longer holds the first events, only a later snapshot can bring all rows. Waits until the
    source holds everything that the table has applied."""
    deadline = time.monotonic() + patience_seconds
    while True:
        extent = table.source.extents(frozenset({table.topic}))[table.topic]
        extent.check()
        if all(extent.end.get(partition, 0) >= position for partition, position in before.positions.items()):
            break
        if time.monotonic() >= deadline:
            raise PositionLost(
                what="The source does not hold all events that the table has applied",
                where=f"topic {table.topic}",
                found=f"events up to {positions_text(extent.end)}",
                expected=f"events up to {positions_text(before.positions)}",
                remedy="Wait until the sink has landed the last events in bronze, and rebuild again.",
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    lost = {partition: first for partition, first in extent.beginning.items() if first > 0}
    if lost and not since_snapshot:
        raise PositionLost(
            what="The source does not hold the first events of the table any more",
            where=f"topic {table.topic}",
            found=f"events from {positions_text(lost)} on",
            expected="events from offset 0 on",
            remedy=[
                "Rebuild from bronze if it still holds them, which [bronze].retention decides. Otherwise "
                "take a new snapshot, and rebuild from its events alone (--since-snapshot).",
                TakeSnapshot(),
            ],
        )
    ranges = tuple(
        OffsetRange(partition, extent.beginning.get(partition, 0), end)
        for partition, end in sorted(extent.end.items())
        if end
    )
    _check_each_once(table, ranges)
    return ranges


def _check_each_once(table: TableIngest, ranges: tuple[OffsetRange, ...]) -> None:
    events = table.source.read(table.topic, ranges).select("partition", "offset")
    counts = events.agg(F.count("*"), F.countDistinct("partition", "offset")).first()
    assert counts is not None
    if counts[0] != counts[1]:
        raise NotRebuilt(
            what="The source holds the events of several topics of this name: the topic was recreated",
            where=f"topic {table.topic}",
            found=f"{counts[0]:,} events at {counts[1]:,} offsets",
            expected="one event at each offset",
            remedy="If the newer topic began with a snapshot, remove the older one's events from bronze.",
        )


def _parts_anew(table: TableIngest, timeline: Timeline) -> TableParts:
    """Return the parts of a table about which nothing is known yet except its commits."""
    return TableParts(
        name=table.name,
        log=table.parts.log,
        hudi=table.hudi,
        reader=TopicReader(table.topic, table.source),
        versions=table.new_versions(),
        aside=SettingAside(table.topic, table.quarantine_path, table.hudi.policy),
        commits=KnownCommits(table.name, table.hudi, timeline.requested),
        newer=table.parts.newer,
    )


@dataclass(frozen=True)
class _Replacing:
    """Writes a batch in place of all rows that the table holds.

    The table had the ledger `replaced`, the columns `replaced_columns` (None if they are unknown) and the
    last instant `replaced_instant`. `select` chooses the changes that make up the new rows."""

    name: str
    hudi: HudiTable
    replaced: Ledger
    replaced_columns: TableColumns | None
    replaced_instant: str | None
    select: Callable[[DataFrame, Survey], DataFrame]

    def columns(self, versions: Schemas) -> TableColumns | None:
        return versions.columns_anew()

    def buckets(self, events: int) -> None:
        """Return None: Hudi's own writer replaces files, and it takes no rows in buckets."""

    def to_apply(self, changes: DataFrame, survey: Survey) -> DataFrame:
        return self.select(without_applied(changes, Ledger(self.replaced.topic), survey), survey)

    def recorded(self, ledger: Ledger) -> Ledger:
        # When the source committed old events says nothing about the lake's freshness.
        return replace(ledger, source_times=None, snapshot=self.replaced.snapshot)

    def retype(self, columns: TableColumns, retyped: tuple[str, ...]) -> None:
        """Do nothing: the replacing commit itself brings the new types."""

    def commit(self, folded: Folded, ledger: Ledger) -> None:
        """Replace all rows. Raises `NotRebuilt` if the table has changed since the rebuild began."""
        is_behind = any(
            ledger.positions.get(partition, 0) < position
            for partition, position in self.replaced.positions.items()
        )
        if is_behind or self.hudi.timeline().last_instant != self.replaced_instant:
            raise NotRebuilt(
                what="The table has changed while it was rebuilt",
                where=self.name,
                remedy="Stop what writes to it, and rebuild again.",
            )
        rows = folded.rows if ledger.snapshot is None else _without_gone_rows(folded.rows, ledger.snapshot)
        if self.hudi.policy.deletes != "soft":
            rows = rows.where(F.col(OPERATION) != DELETE_MARKER)
        self.hudi.replace_all(rows, replacement_metadata(ledger, self._retyped(folded.rows)))

    def _retyped(self, rows: DataFrame) -> tuple[str, ...]:
        """Return the columns whose types have changed, or all columns if the old types are unknown."""
        columns = columns_of_table(rows.schema, ())
        return (
            columns.names if self.replaced_columns is None else columns.retyped_since(self.replaced_columns)
        )


def _without_gone_rows(rows: DataFrame, snapshot: AppliedSnapshot) -> DataFrame:
    """Delete the rows that no event has deleted, but that an online snapshot has shown to be gone."""
    condition = is_gone(rows, snapshot, epoch=0)
    return rows.where(~condition).unionByName(as_deleted(rows.where(condition), snapshot))


def _all_changes(changes: DataFrame, _: Survey) -> DataFrame:
    return changes


def _since_last_snapshot(topic: str, changes: DataFrame, survey: Survey) -> DataFrame:
    """Return the reads of the last snapshot, and the changes after it. Raises `NotRebuilt`."""
    _check_snapshot(topic, read_last_snapshot(changes, survey))
    return changes.where(is_since_last_snapshot(survey))


def _check_snapshot(topic: str, found: LastSnapshot) -> None:
    if found.is_first:
        raise NotRebuilt(
            what="The source holds no snapshot of the table but the one that it began with",
            where=f"topic {topic}",
            expected="a later one, which has read all rows that there were",
            remedy="Wait until the new snapshot is in the source. The snapshot of an empty table has no "
            "event: if the table is empty, remove its folder in silver.",
        )
    if not found.is_whole:
        raise NotRebuilt(
            what="The last snapshot of the table is not over yet",
            where=f"topic {topic}",
            expected="a read that Debezium has marked as the table's last",
            remedy="Wait until it is in the source, and rebuild again.",
        )
