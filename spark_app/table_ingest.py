"""One table: from a range of its topic's offsets to one commit, through all stages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contract.errors import TributaryError
from spark_app.complete import complete, with_truncated_rows, without_needless
from spark_app.connect_schema import SchemaTexts, SchemaVersion, UnreadableSchema, read_schema_version
from spark_app.decode import DELETE, TRUNCATE, decode, undecodable
from spark_app.event import EventSource, OffsetRange, TopicExtent, ranges_from
from spark_app.fold import fold, fold_and_carry_forward
from spark_app.frame import schema_texts
from spark_app.hudi import COMMITS_BETWEEN_SERVICES, HudiTable
from spark_app.ledger import Ledger
from spark_app.order import last_truncate, ordering, without_applied
from spark_app.progress import Committed, Freshness, Replayed, iso_utc
from spark_app.quarantine import quarantined, read_quarantine, replace_quarantine, write_quarantine
from spark_app.survey import Survey, Truncate, first_halved_moves, survey_changes
from spark_app.table_columns import (
    APP_COLUMNS,
    DELETED,
    TableColumns,
    columns_of,
    columns_of_table,
    merge,
)

REMEMBERED_VERSIONS = 8

FIRST_EVENTS = 100
"""Of a run: enough to learn the schema that most of its events have."""

MOST_EVENTS_WITHIN_A_MOVE = 100_000
"""After so many events the second half of a move is not to come: far more than Debezium sends again after a
crash between the two."""

EVENTS_OF_ONE_TASK = 10_000
"""So few events are worked through in one task: to shuffle them between tasks takes longer than they do."""


class PositionLost(TributaryError):
    """The source does not hold the events that come next."""


@dataclass
class TableIngest:
    """A table and how far it is. Not to be used by two threads at once.

    `name` is source.schema.table; `quarantine_path` the folder for its events that cannot be applied.
    """

    name: str
    topic: str
    source: EventSource
    hudi: HudiTable
    quarantine_path: str
    _ledger: Ledger | None = None
    _columns: TableColumns | None = None
    _versions: tuple[SchemaVersion, ...] = ()
    _unreadable: tuple[SchemaTexts, ...] = ()
    _commits_since_services: int = 0

    def recover(self) -> None:
        """Takes positions and columns from the table itself, and finishes what a crash left behind."""
        self._ledger, self._columns = Ledger(self.topic), None
        if not self.hudi.exists():
            return
        commit = self.hudi.last_commit()
        if commit is None:
            return
        self.hudi.finish_pending_compaction()
        self._commits_since_services = self.hudi.delta_commits()
        self._ledger = commit.ledger
        self._columns = columns_of_table(self.hudi.schema(), commit.ledger.key_columns)

    def forget(self) -> None:
        """After a failure nothing is certain but what the table holds: the next use recovers."""
        self._ledger = None

    @property
    def is_recovered(self) -> bool:
        """Whether it knows where the table is. `recover` reads from S3; much else here does not."""
        return self._ledger is not None

    @property
    def ledger(self) -> Ledger:
        self._recover_once()
        assert self._ledger is not None
        return self._ledger

    def pending(self, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
        """The ranges to apply next, at most `limit` events. Raises `PositionLost`."""
        _check_held(self.topic, self.ledger.positions, extent)
        return ranges_from(self.ledger.positions, extent, limit)

    def apply(self, ranges: tuple[OffsetRange, ...]) -> Committed | None:
        """Commits the events of the ranges; None where there is no table yet, nor an event to make one from.

        A change of a primary key is one change, though two events: where the second is not in the ranges yet,
        what comes before the first is committed, for the row's unchanged TOAST values go with the old key's
        row. Raises `SchemaConflict`, `UnsupportedType` or `SourceRewound` where a person has to decide."""
        started = time.monotonic()
        self._recover_once()
        events = self.source.read(self.topic, ranges)
        if sum(r.length for r in ranges) <= EVENTS_OF_ONE_TASK:
            events = events.coalesce(1)
        if not self._versions:
            # In all likelihood they tell the schema of most; if not, the survey finds others.
            self._learn_versions(events.limit(FIRST_EVENTS))
        if self._merged_columns() is None:
            self._learn_versions(events)
        if self._merged_columns() is None:
            self._set_aside(events, undecodable(events), ranges)
            return None
        with self._decoded(events) as (changes, columns, survey):
            if (
                survey.has_moved
                and (whole := _without_halved_move(ranges, first_halved_moves(changes))) != ranges
            ):
                return self.apply(whole) if whole else None
            bad = changes.where(F.col("reason").isNotNull()).select(*_WHY_BAD)
            good = without_applied(changes.where(F.col("reason").isNull()), self.ledger, survey)
            folded, unknown = self._fold(good, columns, survey, last_truncate(self.ledger, survey))
            quarantined_events = survey.bad
            if unknown is not None:
                quarantined_events += unknown.count()
                bad = bad.unionByName(unknown)
            if quarantined_events:
                self._quarantine(events, bad, ranges)
            ledger = self._ledger_after(ranges, survey, columns.key, quarantined_events)
            self._commits_since_services += 1
            self.hudi.write(self._rows(folded, columns), ledger, cleans=self._is_service_due)
        self._ledger, self._columns = ledger, columns
        return self._report(time.monotonic() - started)

    def replay(self) -> Replayed:
        """Applies the quarantined events that can be read by now, each at its place among its key's other
        events.

        All that the source sent for such a key since is folded anew, so that an old event does not undo a
        newer one. Raises `PositionLost` where the source does not hold all of that."""
        self._recover_once()
        found = read_quarantine(self.hudi.spark, self.quarantine_path)
        if found is None or self._columns is None:
            return Replayed(self.name, applied=0, left=0 if found is None else found[0].count())
        quarantined_events, folders = found
        ranges = self._since(quarantined_events)
        _check_replayable(self.topic, ranges, self.source.extents(frozenset({self.topic}))[self.topic])
        events = self.source.read(self.topic, ranges)
        self._learn_versions(events)
        with self._decoded(events) as (changes, columns, _):
            good = changes.where(F.col("reason").isNull())
            readable = good.join(quarantined_events, list(_POSITION), "left_semi")
            keys = _with_moved(readable, good)
            theirs = good.where(F.col("key").isin(*keys) | (F.col("op") == TRUNCATE))
            nothing_applied = Ledger(self.topic, epoch=self.ledger.epoch)
            survey = survey_changes(theirs, nothing_applied)
            truncate = last_truncate(nothing_applied, survey)
            folded, unknown = self._fold_changed(theirs, columns, survey, truncate)
            if unknown is not None:
                readable = readable.join(unknown, list(_POSITION), "left_anti")
            applied = readable.count()
            if applied:
                self.hudi.write(self._rows(folded, columns), self.ledger.next_commit())
            left = quarantined_events.join(readable, list(_POSITION), "left_anti")
            left_count = left.count()
            if applied:
                replace_quarantine(left, self.quarantine_path, f"e{self.ledger.epoch}-replayed", folders)
        self._columns = columns
        return Replayed(self.name, applied, left_count)

    def _since(self, quarantined_events: DataFrame) -> tuple[OffsetRange, ...]:
        """From the first quarantined event of each partition to where the table is."""
        firsts = quarantined_events.groupBy("partition").agg(F.min("offset").alias("first")).collect()
        positions = self.ledger.positions
        ranges = (OffsetRange(r["partition"], r["first"], positions.get(r["partition"], 0)) for r in firsts)
        return tuple(r for r in ranges if r.length > 0)

    def maintain(self) -> None:
        """Table services that are due. Nothing else may write to the table meanwhile."""
        if not self._is_service_due:
            return
        if self.hudi.policy.storage == "merge_on_read":
            self.hudi.compact()
        self._commits_since_services = 0

    @property
    def _is_service_due(self) -> bool:
        return self._commits_since_services >= COMMITS_BETWEEN_SERVICES

    def _recover_once(self) -> None:
        if self._ledger is None:
            self.recover()

    @contextmanager
    def _decoded(self, events: DataFrame) -> Iterator[tuple[DataFrame, TableColumns, Survey]]:
        """The changes of a batch, held until the batch is done, with its table's columns and its survey."""
        changes, columns, survey = self._decode(events)
        if survey.of_unknown_schema and self._learn_versions(events):
            changes.unpersist()
            changes, columns, survey = self._decode(events)
        try:
            yield changes, columns, survey
        finally:
            changes.unpersist()

    def _decode(self, events: DataFrame) -> tuple[DataFrame, TableColumns, Survey]:
        columns = self._merged_columns()
        assert columns is not None
        changes = decode(events, self._versions, columns).cache()
        return changes, columns, survey_changes(changes, self.ledger)

    def _merged_columns(self) -> TableColumns | None:
        return merge(self._columns, [columns_of(version) for version in self._versions])

    def _learn_versions(self, events: DataFrame) -> bool:
        """Reads the schemas that the events bring; whether there was a new one that is a schema. One Spark
        job."""
        known = (*(version.texts for version in self._versions), *self._unreadable)
        learned: list[SchemaVersion] = []
        for row in schema_texts(events, known).collect():
            texts = SchemaTexts(row["key"], row["value"])
            try:
                learned.append(read_schema_version(texts))
            except UnreadableSchema:
                # Its events go to quarantine, with the text that could not be read.
                self._unreadable = (*self._unreadable, texts)[-REMEMBERED_VERSIONS:]
        self._versions = (*self._versions[-REMEMBERED_VERSIONS:], *learned)
        return bool(learned)

    def _fold(
        self, changes: DataFrame, columns: TableColumns, survey: Survey, truncate: Truncate | None
    ) -> tuple[DataFrame, DataFrame | None]:
        """The rows to apply (`fold.folded_type`) and, where some value is nowhere to be found, those left
        out."""
        folded, unknown = self._fold_changed(changes, columns, survey, truncate)
        if truncate is not None and self._columns is not None:
            folded = with_truncated_rows(folded, self.hudi.read(), columns, truncate)
        return folded, unknown

    def _fold_changed(
        self, changes: DataFrame, columns: TableColumns, survey: Survey, truncate: Truncate | None
    ) -> tuple[DataFrame, DataFrame | None]:
        policy = self.hudi.policy
        is_soft = policy.deletes == "soft"
        needed_by_deletes = columns.beside_key if is_soft else policy.partition_by
        deletes_lack_values = bool(needed_by_deletes) and (survey.deletes > 0 or truncate is not None)
        if not survey.has_unavailable and not deletes_lack_values:
            return fold(changes, survey, truncate), None
        carried = fold_and_carry_forward(changes, columns, survey, truncate)
        folded = without_needless(carried, needed_by_deletes)
        if self._columns is not None:
            folded = complete(folded, self.hudi.read(), columns)
        is_delete = F.col("op").isin(DELETE, TRUNCATE)
        # A delete of a row that the lake never had: a soft one is kept, without values; a hard one has no
        # effect.
        is_known = (F.size("missing") == 0) | (is_delete & F.lit(is_soft))
        return folded.where(is_known), _left_out(folded.where(~is_known & ~is_delete))

    def _set_aside(self, events: DataFrame, bad: DataFrame, ranges: tuple[OffsetRange, ...]) -> None:
        """There is no table that could hold the position: a restart sets the same events aside again, once
        each."""
        count = bad.count()
        if count:
            self._quarantine(events, bad, ranges)
        self._ledger = self._ledger_after(ranges, Survey(bad=count), (), count)

    def _quarantine(self, events: DataFrame, bad: DataFrame, ranges: tuple[OffsetRange, ...]) -> None:
        write_quarantine(quarantined(events, bad), self.quarantine_path, self.ledger.epoch, ranges)

    def _ledger_after(
        self, ranges: tuple[OffsetRange, ...], survey: Survey, key: tuple[str, ...], quarantined_events: int
    ) -> Ledger:
        before = self.ledger
        sequences, sequence_ts_us = dict(before.sequences), dict(before.sequence_ts_us)
        for partition, found in survey.partitions.items():
            if found.snapshot_starts:
                sequences.pop(partition, None)
                sequence_ts_us.pop(partition, None)
            if found.last_sequence is not None and found.last_sequence_ts_us is not None:
                sequences[partition] = max(found.last_sequence, sequences.get(partition, found.last_sequence))
                sequence_ts_us[partition] = max(found.last_sequence_ts_us, sequence_ts_us.get(partition, 0))
        return replace(
            before,
            positions={**before.positions, **{r.partition: r.until for r in ranges}},
            sequences=sequences,
            sequence_ts_us=sequence_ts_us,
            key_columns=key or before.key_columns,
            events=survey.changes,
            deletes=survey.deletes,
            quarantined=quarantined_events,
            source_times=survey.source_times,
        )

    def _rows(self, folded: DataFrame, columns: TableColumns) -> DataFrame:
        """The rows as the table holds them: `APP_COLUMNS`, `_deleted` where deletes are soft, the
        source's."""
        is_deleted = F.col("op").isin(DELETE, TRUNCATE)
        is_soft = self.hudi.policy.deletes == "soft"
        app_values = {
            "_key": F.col("key"),
            "_op": F.col("op") if is_soft else F.when(is_deleted, DELETE).otherwise(F.col("op")),
            "_seq": ordering(self.ledger.epoch, F.col("offset")),
            "_source_ts": F.col("source_ts"),
            "_topic": F.col("topic"),
            "_partition": F.col("partition"),
            "_offset": F.col("offset"),
        }
        return folded.select(
            *[app_values[app.name].cast(app.dataType).alias(app.name) for app in APP_COLUMNS.fields],
            *([is_deleted.alias(DELETED)] if is_soft else []),
            *[F.col("row")[name].alias(name) for name in columns.names],
        )

    def _report(self, seconds: float) -> Committed:
        committed_us = time.time_ns() // 1000
        commit = self.hudi.last_commit()
        assert commit is not None
        ledger = commit.ledger
        return Committed(
            table=self.name,
            instant=commit.instant,
            at=iso_utc(committed_us),
            events=ledger.events,
            rows=commit.rows_upserted,
            deletes=commit.rows_deleted,
            quarantined=ledger.quarantined,
            positions=ledger.positions,
            freshness_ms=Freshness.of(ledger.source_times, committed_us),
            seconds=round(seconds, 3),
        )


def _left_out(folded: DataFrame) -> DataFrame:
    return folded.select(
        "topic",
        "partition",
        "offset",
        F.lit("unavailable_value").alias("reason"),
        F.concat(
            F.lit("Neither the batch nor the table holds the unchanged value of "),
            F.concat_ws(", ", "missing"),
        ).alias("message"),
    )


_POSITION = ("topic", "partition", "offset")
_WHY_BAD = ("topic", "partition", "offset", "reason", "message")


def _with_moved(readable: DataFrame, good: DataFrame) -> frozenset[str]:
    """The keys of the readable events, and all under which the source knew one of their rows."""
    keys = {row["key"] for row in readable.where(F.col("key").isNotNull()).select("key").distinct().collect()}
    is_move = F.col("moved_from").isNotNull()
    moves = [(row[0], row[1]) for row in good.where(is_move).select("moved_from", "key").distinct().collect()]
    while more := {key for pair in moves if keys & set(pair) for key in pair} - keys:
        keys |= more
    return frozenset(keys)


def _check_replayable(topic: str, ranges: tuple[OffsetRange, ...], extent: TopicExtent) -> None:
    for r in ranges:
        held = (extent.beginning.get(r.partition, 0), extent.end.get(r.partition, 0))
        if held[0] > r.first or held[1] < r.until:
            raise PositionLost(
                what="The source does not hold all events since the quarantined ones",
                where=f"topic {topic}, partition {r.partition}",
                found=f"offsets {held[0]} to {held[1] - 1}",
                expected=f"offsets {r.first} to {r.until - 1}",
                remedy="Replay from bronze, and wait until the sink has landed the last events.",
            )


def _without_halved_move(
    ranges: tuple[OffsetRange, ...], halved: Mapping[int, int]
) -> tuple[OffsetRange, ...]:
    if sum(r.length for r in ranges) >= MOST_EVENTS_WITHIN_A_MOVE:
        return ranges
    shorter = (replace(r, until=min(r.until, halved.get(r.partition, r.until))) for r in ranges)
    return tuple(r for r in shorter if r.length > 0)


def _check_held(topic: str, positions: Mapping[int, int], extent: TopicExtent) -> None:
    for partition, end in extent.end.items():
        beginning, position = extent.beginning[partition], positions.get(partition, 0)
        where = f"topic {topic}, partition {partition}"
        if position > end:
            raise PositionLost(
                what="The topic ends before the position that the table has reached: it was made anew",
                where=where,
                found=f"the last offset is {end - 1}",
                expected=f"offset {position} or later",
                remedy="Remove the table's folder in silver; the next ingest makes it from the new topic.",
            )
        if position < beginning:
            raise PositionLost(
                what="The events that come next are not held any more",
                where=where,
                found=f"the first offset held is {beginning}",
                expected=f"offset {position}",
                remedy="Fill the gap from bronze: tributary ingest --from bronze.",
            )
