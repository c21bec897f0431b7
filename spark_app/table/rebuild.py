"""The rebuild: a table made anew from all that was ever sent of it, in the place of the old one at once."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.table_columns import OPERATION, TableColumns, columns_of, columns_of_table, merge_anew
from spark_app.ledger.ledger import Ledger, LedgerError
from spark_app.ledger.topic_checks import PositionLost
from spark_app.merge.survey import LastSnapshot, Survey, is_since_last_snapshot, read_last_snapshot
from spark_app.run.progress import Committed
from spark_app.sources.event import OffsetRange, positions_text
from spark_app.table.quarantine import read_quarantine, remove_quarantine
from spark_app.table.table_ingest import Folded, TableIngest
from spark_app.wire.decode import DELETE
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import ShowQuarantine, TakeSnapshot

PATIENCE_SECONDS = 120.0
"""The sink lands events some seconds after they are in Kafka."""

_SECONDS_BETWEEN_LOOKS = 2.0


class NotRebuilt(TributaryError):
    """A table that cannot be made anew as things are; it is as it was."""


def rebuild_table(
    table: TableIngest, *, since_snapshot: bool = False, patience_seconds: float = PATIENCE_SECONDS
) -> Committed:
    """Replaces the rows of the table by those that all events of its source give, in one commit.

    `since_snapshot`: those since the last snapshot give, which has read all rows that there were. Nothing
    else may write to the table meanwhile. The new rows are those of the position that the table had
    reached, or of a later one; the next ingest goes on from there. A column whose type has changed gets one
    that holds all its values. Of the quarantine stays what still cannot be applied. Raises `NotRebuilt`,
    `PositionLost` and what `TableIngest.apply` raises; the table is then as it was."""
    before = _ledger_of(table)
    if before.epoch > 0:
        raise NotRebuilt(
            what="The table's topic was made anew once, so that no source has all of its events in one order",
            where=f"topic {table.topic}",
            found=f"epoch {before.epoch}",
            remedy=["Remove the table's folder in silver, and take a new snapshot.", TakeSnapshot()],
        )
    ranges = _all_ranges(table, before, patience_seconds)
    timeline = table.hudi.timeline()
    anew = _TableAnew(
        table.name,
        table.topic,
        table.source,
        table.hudi,
        table.quarantine_path,
        written=table.written,
        _ledger=Ledger(table.topic, topic_id=before.topic_id),
        _known=timeline.requested,
        replaced=before,
        replaced_columns=table.columns,
        replaced_instant=timeline.last_instant,
        since_snapshot=since_snapshot,
    )
    quarantine = read_quarantine(table.hudi.spark, table.quarantine_path, before.epoch)
    committed = anew.apply(ranges)
    if committed is None:
        raise NotRebuilt(
            what="No event of the table can be read",
            where=f"topic {table.topic}",
            remedy=ShowQuarantine(),
        )
    if quarantine is not None:
        old = [folder for folder in quarantine[1] if folder.rpartition("/")[2] != anew.quarantine_name]
        remove_quarantine(table.hudi.spark, old)
    table.forget()
    return committed


def _ledger_of(table: TableIngest) -> Ledger:
    """Of a table that cannot tell how far it is nothing is known; it can be made anew all the same."""
    try:
        table.recover()
        return table.ledger
    except LedgerError:
        return Ledger(table.topic)


def _all_ranges(table: TableIngest, before: Ledger, patience_seconds: float) -> tuple[OffsetRange, ...]:
    """From the first event of the topic to the last that the source holds, once that is what the table has
    applied or more."""
    deadline = time.monotonic() + patience_seconds
    while True:
        extent = table.source.extents(frozenset({table.topic}))[table.topic]
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
    if lost:
        raise PositionLost(
            what="The source does not hold the first events of the table any more",
            where=f"topic {table.topic}",
            found=f"events from {positions_text(lost)} on",
            expected="events from offset 0 on",
            remedy="Rebuild from bronze, which keeps all events.",
        )
    ranges = tuple(OffsetRange(partition, 0, end) for partition, end in sorted(extent.end.items()) if end)
    _check_each_once(table, ranges)
    return ranges


def _check_each_once(table: TableIngest, ranges: tuple[OffsetRange, ...]) -> None:
    events = table.source.read(table.topic, ranges).select("partition", "offset")
    counts = events.agg(F.count("*"), F.countDistinct("partition", "offset")).first()
    assert counts is not None
    if counts[0] != counts[1]:
        raise NotRebuilt(
            what="The source holds the events of more than one topic of this name: it was made anew once",
            where=f"topic {table.topic}",
            found=f"{counts[0]:,} events at {counts[1]:,} offsets",
            expected="one event at each offset",
            remedy="If the newer topic began with a snapshot, remove the older one's events from bronze.",
        )


@dataclass
class _TableAnew(TableIngest):
    """A table as if there were none yet, whose first commit takes the place of all that `hudi` holds: a table
    of the ledger `replaced`, of `replaced_columns` where they are known, and of the last instant
    `replaced_instant`. With `since_snapshot` its rows are those of the last snapshot and of what came
    after it."""

    replaced: Ledger = field(default_factory=lambda: Ledger(""))
    replaced_columns: TableColumns | None = None
    replaced_instant: str | None = None
    since_snapshot: bool = False
    quarantine_name: str | None = None

    def _merged_columns(self) -> TableColumns | None:
        return merge_anew(columns_of(version) for version in self._versions)

    def _buckets(self, events: int) -> None:
        """Hudi's own writer replaces files."""

    def _to_apply(self, changes: DataFrame, survey: Survey) -> DataFrame:
        changes = super()._to_apply(changes, survey)
        if not self.since_snapshot:
            return changes
        self._check_snapshot(read_last_snapshot(changes, survey))
        return changes.where(is_since_last_snapshot(survey))

    def _check_snapshot(self, found: LastSnapshot) -> None:
        if found.is_first:
            raise NotRebuilt(
                what="The source holds no snapshot of the table but the one that it began with",
                where=f"topic {self.topic}",
                expected="a later one, which has read all rows that there were",
                remedy="Wait until the new snapshot is in the source. Of a table that is empty it has no "
                "event: if it is, remove the table's folder in silver.",
            )
        if not found.is_whole:
            raise NotRebuilt(
                what="The last snapshot of the table is not over yet",
                where=f"topic {self.topic}",
                expected="a read that Debezium has marked as the table's last",
                remedy="Wait until it is in the source, and rebuild again.",
            )

    def _quarantine(self, events: DataFrame, bad: DataFrame, ranges: tuple[OffsetRange, ...]) -> str:
        folder = super()._quarantine(events, bad, ranges)
        self.quarantine_name = folder.rpartition("/")[2]
        return folder

    def _ledger_after(
        self, ranges: tuple[OffsetRange, ...], survey: Survey, key: tuple[str, ...], quarantined_events: int
    ) -> Ledger:
        # How long ago the source committed all of this says nothing of how fresh the lake is.
        return replace(super()._ledger_after(ranges, survey, key, quarantined_events), source_times=None)

    def _commit(self, folded: Folded, ledger: Ledger) -> None:
        is_behind = any(
            ledger.positions.get(partition, 0) < position
            for partition, position in self.replaced.positions.items()
        )
        if is_behind or self.hudi.timeline().last_instant != self.replaced_instant:
            raise NotRebuilt(
                what="The table has changed while it was made anew",
                where=self.name,
                remedy="Stop what writes to it, and rebuild again.",
            )
        is_soft = self.hudi.policy.deletes == "soft"
        rows = folded.rows if is_soft else folded.rows.where(F.col(OPERATION) != DELETE)
        self.hudi.replace_all(rows, ledger, self._retyped(folded.rows))

    def _retyped(self, rows: DataFrame) -> tuple[str, ...]:
        """The columns that have other types than before, or of which that is not known."""
        columns = columns_of_table(rows.schema, ())
        return (
            columns.names if self.replaced_columns is None else columns.retyped_since(self.replaced_columns)
        )
