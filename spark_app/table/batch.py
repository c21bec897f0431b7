"""Apply a batch: take the events of some ranges through all stages to one commit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.partition_columns import check_no_column_is_a_key_part, check_partition_columns
from spark_app.columns.table_columns import TableColumns
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import LedgerCommit
from spark_app.ledger.ledger import Ledger
from spark_app.merge.halved_moves import first_halved_moves
from spark_app.merge.order import without_repeated_transactions
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import SourceLog
from spark_app.reports import Committed, Freshness, iso_utc
from spark_app.sources.event import OffsetRange
from spark_app.steps.buckets import Buckets
from spark_app.steps.held import Held
from spark_app.table.batch_mode import BatchMode
from spark_app.table.batch_plan import (
    BatchPlan,
    committed_ledger,
    is_work_of_one_task,
    ledger_after,
    needed_by_deletes,
    not_applied,
    plan_batch,
    without_halved_moves,
)
from spark_app.table.decoding import DecodedBatch, Decoding
from spark_app.table.folding import Folding, silver_rows
from spark_app.table.known_commits import KnownCommits
from spark_app.table.newer_rows import NewerRows, batch_name
from spark_app.table.setting_aside import SettingAside
from spark_app.table.table_state import TableState
from spark_app.table.topic_reader import TopicReader
from spark_app.wire.decode import undecoded, unfilled
from spark_app.wire.schemas import Schemas

FIRST_EVENTS = 100
"""As many events of a run are enough to learn the schema that most of them have."""


@dataclass(frozen=True)
class TableParts:
    """The parts that applying a batch needs.

    name   source.schema.table
    log    reads positions
    newer  keeps the newer rows; None if the log keeps the order of a key's changes
    """

    name: str
    log: SourceLog
    hudi: HudiTable
    reader: TopicReader
    versions: Schemas
    aside: SettingAside
    commits: KnownCommits
    newer: NewerRows | None = None

    @property
    def deletes_are_soft(self) -> bool:
        return self.hudi.policy.deletes == "soft"


@dataclass(frozen=True)
class Applied:
    """The result of a batch: the table's new state, and the report of its commit, if there is one.

    `quarantine_folder` has the events that were set aside; None if there were none."""

    state: TableState
    report: Committed | None = None
    quarantine_folder: str | None = None


class Phases:
    """The seconds that the parts of a commit took."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def end(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now

    @property
    def total(self) -> float:
        return time.monotonic() - self._began


@dataclass(frozen=True)
class BatchApplier:
    """Applies one batch to a table in `state`."""

    parts: TableParts
    state: TableState
    mode: BatchMode

    def apply(self, ranges: tuple[OffsetRange, ...]) -> Applied:
        """Commit the events of the ranges that were not applied before.

        There is no commit if there are no such events, or while no event shows a table's columns. A key
        change is one change with two events. If the ranges hold only one of the two, they end before it,
        because the values that the update left out are in the old key's row.

        Raises `SchemaConflict`, `UnsupportedType`, `NotAPartitionColumn`, `SourceRewound` or
        `QuarantineLimitReached` if a person has to decide."""
        phases = Phases()
        while ranges := not_applied(ranges, self.state.ledger):
            count = sum(r.length for r in ranges)
            are_few = is_work_of_one_task(count)
            events = self.parts.reader.read(ranges)
            if are_few:
                events = events.coalesce(1)
            columns = self._columns_of(events)
            if columns is None:
                return self._without_table(events, ranges)
            # Buckets fold by offset, which is not the order of changes that come late.
            has_buckets = not are_few and self.parts.newer is None
            buckets = self.mode.buckets(count) if has_buckets else None
            with self._decoding().held(
                events, buckets, folds_partially=self._folds_partially(columns, buckets)
            ) as batch:
                phases.end("decode")
                whole = self._whole_ranges(ranges, batch)
                if whole == ranges:
                    return self._commit(events, batch, buckets, ranges, phases)
            ranges = whole
        return Applied(self.state)

    def _columns_of(self, events: DataFrame) -> TableColumns | None:
        """Return the table's columns. Learn from the events first if not enough is known."""
        versions = self.parts.versions
        if versions.is_empty:
            # Most events probably have the first ones' schema. The survey finds events with another one.
            versions.learn(events.limit(FIRST_EVENTS))
        if self.mode.columns(versions) is None:
            versions.learn(events)
        return self.mode.columns(versions)

    def _decoding(self) -> Decoding:
        keeps_headers = self.parts.reader.source.keeps_headers
        return Decoding(self.parts.versions, self.mode, self.state.ledger, self.parts.log, keeps_headers)

    def _folds_partially(self, columns: TableColumns, buckets: Buckets | None) -> bool:
        # A snapshot has each key once. And if there are few tasks, other tables would wait for a core.
        has_repeated_keys = buckets is not None and self.state.has_table
        # Which changes are repeated is known only once the whole batch was surveyed.
        may_end_within_repeated = self.parts.log.shares_positions
        is_needed = needed_by_deletes(self.parts.hudi.policy, columns)
        return has_repeated_keys and not is_needed and not may_end_within_repeated

    def _whole_ranges(self, ranges: tuple[OffsetRange, ...], batch: DecodedBatch) -> tuple[OffsetRange, ...]:
        if not batch.survey.has_moved:
            return ranges
        is_partitioned = self.parts.reader.is_partitioned(self.state.ledger, ranges)
        halved = first_halved_moves(batch.changes, self.state.ledger, is_partitioned=is_partitioned)
        return without_halved_moves(ranges, halved)

    def _commit(
        self,
        events: DataFrame,
        batch: DecodedBatch,
        buckets: Buckets | None,
        ranges: tuple[OffsetRange, ...],
        phases: Phases,
    ) -> Applied:
        parts, survey = self.parts, batch.survey
        if not self.state.has_table:
            check_partition_columns(parts.hudi.policy.partitions, batch.columns)
        check_no_column_is_a_key_part(parts.hudi.policy.key_parts, batch.columns)
        plan = plan_batch(self.state, parts.hudi.policy, survey, batch.columns)
        if plan.retyped:
            self.mode.retype(plan.columns, plan.retyped)
        bad = undecoded(batch.changes)
        good = self.mode.to_apply(batch.changes.where(F.col("reason").isNull()), survey)
        if self.parts.log.shares_positions:
            good = without_repeated_transactions(good, survey)
        folded = self._folding().fold_batch(good, plan, survey, buckets)
        set_aside = survey.bad
        if folded.left_out is not None:
            set_aside += folded.left_out.count()
            bad = bad.unionByName(folded.left_out)
        columns_told = unfilled(batch.changes) if 0 < survey.bad <= _MOST_EXPLAINED else None
        folder = self._set_aside(events, bad, survey.changes, set_aside, ranges, columns_told)
        ledger = self._ledger_after(ranges, survey, plan, set_aside)
        if parts.newer is not None:
            name = batch_name(self.state.ledger, ledger)
            newer = parts.newer.of_batch(folded.rows, good, self.state, survey, name)
            folded = replace(folded, rows=newer)
        rows = silver_rows(folded.rows, plan.columns, deletes_are_soft=parts.deletes_are_soft)
        phases.end("fold")
        self.mode.commit(replace(folded, rows=rows), ledger)
        committed_us = time.time_ns() // 1000
        phases.end("write")
        parts.aside.count(survey.changes, set_aside)
        commit, continued_from = parts.commits.find(ledger)
        state = TableState(continued_from, plan.columns, commit.partitions)
        return Applied(state, committed_report(parts.name, commit, committed_us, phases), folder)

    def _folding(self) -> Folding:
        return Folding(self.state, self.parts.hudi.read, self.parts.deletes_are_soft)

    def _ledger_after(
        self, ranges: tuple[OffsetRange, ...], survey: Survey, plan: BatchPlan, set_aside: int
    ) -> Ledger:
        topic_id = self.parts.reader.topic_id
        ledger = committed_ledger(self.state.ledger, ranges, survey, topic_id, plan, set_aside)
        return self.mode.recorded(ledger)

    def _set_aside(
        self,
        events: DataFrame,
        bad: DataFrame,
        count: int,
        set_aside: int,
        ranges: tuple[OffsetRange, ...],
        columns_told: DataFrame | None = None,
    ) -> str | None:
        """Put bad events into quarantine before the commit counts them as applied."""
        if not set_aside:
            return None
        self.parts.aside.check_limit(bad, count, set_aside)
        return self.parts.aside.write(events, bad, self.state.ledger.epoch, ranges, columns_told)

    def _without_table(self, events: DataFrame, ranges: tuple[OffsetRange, ...]) -> Applied:
        """Set aside all events that no table can be created from.

        No table holds the position then. After a restart, the same events are set aside again. The quarantine
        still has each only once."""
        held = Held.in_cache(self.parts.versions.undecodable(events))
        try:
            bad = undecoded(held.rows)
            count = bad.count()
            folder = self._set_aside(events, bad, count, count, ranges)
        finally:
            held.release()
        self.parts.aside.count(count, count)
        topic_id = self.parts.reader.topic_id
        ledger = ledger_after(self.state.ledger, ranges, Survey(bad=count), topic_id, quarantined=count)
        return Applied(replace(self.state, ledger=ledger), quarantine_folder=folder)


_MOST_EXPLAINED = 1_000
"""Of how many bad events of a batch the columns are found. With so many, one is like the other."""


def committed_report(name: str, commit: LedgerCommit, committed_us: int, phases: Phases) -> Committed:
    """Return the report of a commit that completed at `committed_us`, in microseconds since 1970."""
    ledger = commit.ledger
    return Committed(
        table=name,
        instant=commit.instant,
        at=iso_utc(committed_us),
        events=ledger.events,
        rows=commit.rows_upserted,
        deletes=commit.rows_deleted,
        quarantined=ledger.quarantined,
        positions=ledger.positions,
        freshness_ms=Freshness.of(ledger.source_times, committed_us),
        seconds=round(phases.total, 3),
        phases={phase: round(seconds, 3) for phase, seconds in phases.seconds.items()},
    )
