"""One table: from a range of its topic's offsets to one commit, through all stages."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.partition_columns import check_partition_columns
from spark_app.columns.table_columns import (
    APP_COLUMNS,
    DELETED,
    LOG_POSITION,
    ORDERING,
    TableColumns,
    columns_of,
    columns_of_table,
    merge,
)
from spark_app.hudi.hudi_table import (
    HudiCommit,
    HudiTable,
    Timeline,
    has_nested_columns,
    instant_of,
)
from spark_app.jvm.buckets import Buckets, Held
from spark_app.ledger.ledger import Ledger, Truncate
from spark_app.ledger.topic_checks import (
    AnotherTopic,
    check_held,
    check_replayable,
    check_topic,
    fills,
    lost_partitions,
)
from spark_app.merge.complete import complete, with_truncated_rows, without_needless
from spark_app.merge.fold import fold, fold_and_carry_forward, fold_in_buckets, partial_fold
from spark_app.merge.order import last_truncate, remembered_truncate, without_applied
from spark_app.merge.survey import ChangeSurvey, Survey, first_halved_moves, survey_changes
from spark_app.merge.unmarked_moves import with_paired_moves
from spark_app.run.progress import Committed, Freshness, Replayed, Serviced, iso_utc
from spark_app.sources.event import (
    EVENTS_OF_ONE_TASK,
    EventSource,
    OffsetRange,
    Positions,
    TopicExtent,
    positions_text,
    ranges_from,
    split_at,
)
from spark_app.table.quarantine import quarantined, read_quarantine, replace_quarantine, write_quarantine
from spark_app.table.quarantine_limit import LATEST_EVENTS, LatestEvents, QuarantineLimitReached
from spark_app.wire.connect_schema import SchemaTexts, SchemaVersion, UnreadableSchema, read_schema_version
from spark_app.wire.declared_columns import declared_versions
from spark_app.wire.decode import DELETE, TRUNCATE, decode, undecodable, undecoded
from spark_app.wire.json_frame import schema_texts
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile
from tributary.contract.source import Events

REMEMBERED_VERSIONS = 8

FIRST_EVENTS = 100
"""Of a run: enough to learn the schema that most of its events have."""

MOST_EVENTS_WITHIN_A_MOVE = 100_000
"""After so many events the second half of a move is not to come: far more than Debezium sends again after a
crash between the two."""

COMMITS_BETWEEN_SERVICES, COMMITS_BEFORE_EARLY_SERVICES, MOST_COMMITS_BETWEEN_SERVICES = 20, 40, 60
"""A compaction takes some seconds. It waits until the table has nothing else to do, then until no other table
has had its own for a while, but not for ever: a reader merges what was not compacted. The timeline is
shortened after it."""

COMMITTING_TO_COMPACTING = 3.0
"""After each part of its compaction a busy table has commits for so many times as long as the part took."""

SECONDS_BETWEEN_CLEANINGS, IDLE_SECONDS_BETWEEN_CLEANINGS = 600.0, 3600.0
"""A cleaning lists all files of the table. Where nothing was compacted, time alone makes files outdated."""


class AnotherWriter(OSError):
    """Somebody else has changed the table since its ledger was read."""


class ClockIsBehind(OSError):
    """The table's last commit is of a moment that, by the clock here, is still to come."""


class NoOtherTopic(TributaryError):
    """There is no reason to open a new epoch."""


@dataclass(frozen=True)
class Folded:
    """The rows that a batch applies (`fold.folded_type`, then those of the table), and those left out because
    some value is nowhere to be found.

    `are_in_buckets`: they are as `fold.fold_in_buckets` leaves them."""

    rows: DataFrame
    left_out: DataFrame | None = None
    are_in_buckets: bool = False


@dataclass
class TableIngest:
    """A table and how far it is. Not to be used by two threads at once.

    `name` is source.schema.table; `quarantine_path` the folder for its events that cannot be applied. `older`
    has the events that `source` does not hold any more, `written` says how the topic's events are written.
    `partitions_written` are the paths of those that the last commit wrote to.
    """

    name: str
    topic: str
    source: EventSource
    hudi: HudiTable
    quarantine_path: str
    partitions_written: frozenset[str] = frozenset()
    older: EventSource | None = None
    written: Events = field(default_factory=Events)
    _ledger: Ledger | None = None
    _known: frozenset[str] = frozenset()
    _columns: TableColumns | None = None
    _versions: tuple[SchemaVersion, ...] = ()
    _unreadable: tuple[SchemaTexts, ...] = ()
    _commits_since_services: int = 0
    _cleaned_at: float = -math.inf
    _compacting_since: str | None = None
    _next_part_at: float = -math.inf
    _latest: LatestEvents = field(default_factory=LatestEvents)
    _topic_id: str | None = None
    _held_from: Positions = field(default_factory=dict)
    _older_extent: TopicExtent | None = None
    _partitions: frozenset[int] = frozenset()

    def recover(self) -> None:
        """Takes positions and columns from the table itself, and finishes what a crash left behind."""
        self._ledger, self._columns, self._known = None, None, frozenset()
        self._compacting_since = None
        commit = self._last_commit_of_recovered_table()
        if commit is None:
            self._ledger = Ledger(self.topic)
            return
        self.partitions_written = commit.partitions
        self._columns = columns_of_table(self.hudi.schema(), commit.ledger.key_columns)
        self._ledger = commit.ledger

    def forget(self) -> None:
        """After a failure nothing is certain but what the table holds: the next use recovers."""
        self._ledger = None

    @property
    def is_recovered(self) -> bool:
        """Whether it knows where the table is. `recover` reads from S3; much else here does not."""
        return self._ledger is not None

    @property
    def columns(self) -> TableColumns | None:
        """The source's columns of the table; None where there is no table yet."""
        return self._columns

    @property
    def ledger(self) -> Ledger:
        self._recover_once()
        assert self._ledger is not None
        return self._ledger

    def pending(self, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
        """The ranges to apply next, at most `limit` events. Raises `PositionLost` and `AnotherTopic`."""
        check_topic(self.ledger, extent)
        self._topic_id, self._held_from = extent.topic_id, extent.beginning
        self._partitions |= extent.end.keys()
        reaching_back = self._reaching_back(extent)
        check_held(self.topic, self.ledger.positions, reaching_back)
        return ranges_from(self.ledger.positions, reaching_back, limit)

    def behind(self, extent: TopicExtent) -> int:
        """How many of the topic's events are not applied yet. Offsets without an event count too."""
        positions = self.ledger.positions
        return sum(max(0, end - positions.get(partition, 0)) for partition, end in extent.end.items())

    def _reaching_back(self, extent: TopicExtent) -> TopicExtent:
        """The extent, beginning where `older` does in those partitions of which the source has lost the next
        event, if `older` has all of those."""
        lost = lost_partitions(self.ledger.positions, extent)
        if not lost or self.older is None or self.ledger.epoch > 0:
            return extent
        older, positions = self._older_extent, self.ledger.positions
        if older is None or not all(fills(older, extent, positions, p) for p in lost):
            older = self.older.extents(frozenset({self.topic}))[self.topic]
            self._older_extent = older
        filled = {p: older.beginning[p] for p in lost if fills(older, extent, positions, p)}
        return replace(extent, beginning={**extent.beginning, **filled})

    def _read(self, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        lost, held = split_at(ranges, self._held_from)
        if self.older is None or not lost:
            return self.source.read(self.topic, ranges)
        older = self.older.read(self.topic, lost)
        return older.unionByName(self.source.read(self.topic, held)) if held else older

    def apply(self, ranges: tuple[OffsetRange, ...]) -> Committed | None:
        """Commits the events of the ranges that were not applied before; None where there are none, or no
        table yet, nor an event to make one from.

        A change of a primary key is one change, though two events: where one is not in the ranges yet, what
        comes before the other is committed, for the row's unchanged TOAST values go with the old key's
        row. Raises `SchemaConflict`, `UnsupportedType`, `NotAPartitionColumn`, `SourceRewound` or
        `QuarantineLimitReached` where a person has to decide."""
        phases = _Phases()
        self._recover_once()
        ranges = _not_applied(ranges, self.ledger.positions)
        if not ranges:
            return None
        events = self._read(ranges)
        count = sum(r.length for r in ranges)
        are_few = count <= EVENTS_OF_ONE_TASK
        if are_few:
            events = events.coalesce(1)
        if not self._known_versions:
            # In all likelihood they tell the schema of most; if not, the survey finds others.
            self._learn_versions(events.limit(FIRST_EVENTS))
        if self._merged_columns() is None:
            self._learn_versions(events)
        if self._merged_columns() is None:
            self._set_aside(events, undecodable(events), ranges)
            return None
        buckets = None if are_few else self._buckets(count)
        with self._decoded(events, buckets) as (changes, columns, survey):
            phases.end("decode")
            if self._columns is None:
                check_partition_columns(self.hudi.policy.partition_by, columns)
            if (
                survey.has_moved
                and (whole := _without_halved_moves(ranges, self._first_halved_moves(changes, ranges)))
                != ranges
            ):
                return self.apply(whole) if whole else None
            if self._columns is not None and (widened := columns.retyped_since(self._columns)):
                self._widen(columns, widened)
            bad = undecoded(changes)
            good = self._to_apply(changes.where(F.col("reason").isNull()), survey)
            truncate = last_truncate(self.ledger, survey)
            folded = self._fold(good, columns, survey, truncate, buckets)
            quarantined_events = survey.bad
            if folded.left_out is not None:
                quarantined_events += folded.left_out.count()
                bad = bad.unionByName(folded.left_out)
            if quarantined_events:
                self._check_limit(bad, survey.changes, quarantined_events)
                self._quarantine(events, bad, ranges)
            ledger = replace(
                self._ledger_after(ranges, survey, columns.key, quarantined_events),
                truncate=remembered_truncate(self.ledger, survey, truncate),
            )
            self._commits_since_services += 1
            folded = replace(folded, rows=self._rows(folded.rows, columns))
            phases.end("fold")
            self._commit(folded, ledger)
            phases.end("write")
        self._ledger, self._columns = ledger, columns
        self._latest.add(survey.changes, quarantined_events)
        return self._report(ledger, phases)

    def open_epoch(self) -> Committed:
        """Commits that the table goes on at the beginning of the topic that there is now.

        Its rows stay as they are, and whatever comes is later than all that came before. Raises
        `NoOtherTopic` where the topic is the one that the table has read, and where there is no table."""
        phases = _Phases()
        self._recover_once()
        extent = self.source.extents(frozenset({self.topic}))[self.topic]
        try:
            if self.hudi.exists():
                check_topic(self.ledger, extent)
        except AnotherTopic:
            ledger = self.ledger.next_epoch(extent.topic_id)
            stored = self.hudi.read().where(F.lit(False))
            names = [name for name in stored.columns if not name.startswith("_hoodie_")]
            self._timeline_to_continue()
            self.hudi.write(stored.select(*names), ledger, is_there=True)
            self._ledger = ledger
            return self._report(ledger, phases)
        raise NoOtherTopic(
            what="The topic is the one that the table has read: there is no new epoch to open",
            where=f"topic {self.topic}",
            found=f"events up to {positions_text(extent.end)}",
        )

    def replay(self) -> Replayed:
        """Applies the quarantined events that can be read by now, each at its place among its key's other
        events.

        All that the source sent for such a key since is folded anew, so that an old event does not undo a
        newer one. Raises `PositionLost` where the source does not hold all of that."""
        self._recover_once()
        found = read_quarantine(self.hudi.spark, self.quarantine_path, self.ledger.epoch)
        if found is None or self._columns is None:
            return Replayed(self.name, applied=0, left=0 if found is None else found[0].count())
        quarantined_events, folders = found
        ranges = self._since(quarantined_events)
        extent = self.source.extents(frozenset({self.topic}))[self.topic]
        check_topic(self.ledger, extent)
        check_replayable(self.topic, ranges, extent)
        events = self.source.read(self.topic, ranges)
        self._learn_versions(events)
        with self._decoded(events) as (changes, columns, _):
            good = changes.where(F.col("reason").isNull())
            readable = good.join(quarantined_events, list(_POSITION), "left_semi")
            keys = _with_moved(readable, good)
            theirs = good.where(F.col("key").isin(*keys) | (F.col("op") == TRUNCATE))
            nothing_applied = Ledger(self.topic, epoch=self.ledger.epoch, truncate=self.ledger.truncate)
            survey = survey_changes(theirs, nothing_applied)
            truncate = last_truncate(nothing_applied, survey)
            folded = self._fold_changed(theirs, columns, survey, truncate)
            if folded.left_out is not None:
                readable = readable.join(folded.left_out, list(_POSITION), "left_anti")
            applied = readable.count()
            if applied:
                self._timeline_to_continue()
                ledger = self.ledger.next_commit()
                self.hudi.write(self._rows(folded.rows, columns), ledger, is_there=True)
                self._written(ledger)
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

    def is_service_due(self, *, is_idle: bool, is_apart: bool = False) -> bool:
        """Whether to `maintain` now. `is_idle`: there is no event to apply. `is_apart`: no other table has
        been served for a while."""
        if self._columns is None:
            return False
        if self._compacting_since is not None:
            return is_idle or time.monotonic() >= self._next_part_at
        enough = COMMITS_BEFORE_EARLY_SERVICES if is_apart else MOST_COMMITS_BETWEEN_SERVICES
        if is_idle:
            enough = COMMITS_BETWEEN_SERVICES
        return self._commits_since_services >= enough or (
            is_idle and self._is_cleaning_due(IDLE_SECONDS_BETWEEN_CLEANINGS)
        )

    def maintain(self) -> None:
        """The table services that are due, of the compaction of a large table a part. Nothing else may write
        to the table meanwhile."""
        seconds_between_cleanings = IDLE_SECONDS_BETWEEN_CLEANINGS
        if self._commits_since_services >= COMMITS_BETWEEN_SERVICES:
            seconds_between_cleanings = SECONDS_BETWEEN_CLEANINGS
            self._timeline_to_continue()
            if self.hudi.policy.storage == "merge_on_read" and self._compact_part():
                return
            self.hudi.shorten_timeline()
            self._commits_since_services = 0
        if self._is_cleaning_due(seconds_between_cleanings):
            self.hudi.clean()
            self._cleaned_at = time.monotonic()

    def _compact_part(self) -> bool:
        """The next part of a compaction; whether there are others. A busy table then commits for a while."""
        started = time.monotonic()
        if self._compacting_since is None:
            self._compacting_since = instant_of(datetime.now(UTC))
        is_more = self.hudi.compact_part(self._compacting_since)
        if not is_more:
            self._compacting_since = None
        now = time.monotonic()
        self._next_part_at = now + COMMITTING_TO_COMPACTING * (now - started)
        return is_more

    def serve(self) -> Serviced:
        """All table services, whether or not they are due. Nothing else may write to the table meanwhile."""
        started = time.monotonic()
        self._recover_once()
        if self._columns is not None:
            self._commits_since_services = max(self._commits_since_services, COMMITS_BETWEEN_SERVICES)
            self._cleaned_at = -math.inf
            self.maintain()
            while self._compacting_since is not None:
                self.maintain()
        return Serviced(self.name, round(time.monotonic() - started, 3))

    def _commit(self, folded: Folded, ledger: Ledger) -> None:
        self._timeline_to_continue()
        if self._makes_arrays_unreadable(folded.rows):
            self.hudi.compact()
            self._timeline_to_continue()
        self.hudi.write(
            folded.rows,
            ledger,
            # A new truncate deletes as many rows as the table has.
            are_few=ledger.events <= EVENTS_OF_ONE_TASK and ledger.truncate == self.ledger.truncate,
            is_there=self._columns is not None,
            are_in_buckets=folded.are_in_buckets,
        )

    def _makes_arrays_unreadable(self, rows: DataFrame) -> bool:
        """Whether, by a new column, the log files there are become some of which hudi-rs reads no array.

        It takes their rows for partial ones then, and compares the types of arrays with the names of their
        elements, which Avro and Parquet call differently (hudi-rs 0.5.0, pad_partial_to_target)."""
        if self._columns is None or self.hudi.policy.storage != "merge_on_read":
            return False
        if not has_nested_columns(self._columns.row_type):
            return False
        return not set(columns_of_table(rows.schema, self._columns.key).names) <= set(self._columns.names)

    def _timeline_to_continue(self) -> Timeline:
        """The table's timeline, which whatever is written next continues.

        Raises `AnotherWriter` where it has commits that are not known: an app that was paused, and goes on
        when another has taken over, may be so late. (Where the other writes at the same time, Hudi rolls one
        of both back; see also `_written`.) And where the last commit is gone: somebody has put back an
        earlier state of the table. Raises `ClockIsBehind` where the next instant would be before the
        last: Hudi orders instants by their names, which are times, and the rows of one that seems to be older
        than a compaction are never read."""
        timeline = self.hudi.timeline(is_there=self._columns is not None)
        if timeline.requested - self._known:
            raise AnotherWriter(f"{self.name} has commits of another app that is running, or was until now")
        if self._known and max(self._known) not in timeline.requested:
            raise AnotherWriter(f"{self.name} has lost its last commit: it is not what it was")
        now = instant_of(datetime.now(UTC))
        if timeline.last_instant is not None and now <= timeline.last_instant:
            raise ClockIsBehind(
                f"{self.name} was last written at {timeline.last_instant}, and the clock here says {now} "
                "(UTC): set it right, or wait until then"
            )
        return timeline

    def _written(self, ledger: Ledger) -> HudiCommit:
        """The commit of that ledger, which was written just now.

        Where an app that was late has written another meanwhile, what it undid is applied again, from where
        it was."""
        timeline = self.hudi.timeline(is_there=True)
        commits = list(self.hudi.commits(timeline, self._known))
        self._known &= timeline.requested
        self._known |= {commit.instant for commit in commits}
        (own, *_) = [commit for commit in commits if commit.ledger == ledger]
        if len(commits) > 1:
            self._ledger = min((commit.ledger for commit in commits), key=_events_applied)
        return own

    def _is_cleaning_due(self, seconds_between: float) -> bool:
        return time.monotonic() >= self._cleaned_at + seconds_between

    def _recover_once(self) -> None:
        if self._ledger is None:
            self.recover()

    def _last_commit_of_recovered_table(self) -> HudiCommit | None:
        self.hudi.remove_what_an_end_left()
        if not self.hudi.exists():
            return None
        # Before the ledger is read: what another app commits from here on is not part of it.
        timeline = self.hudi.finish_compactions()
        commit = next(self.hudi.commits(timeline), None)
        self._known = timeline.requested
        self._commits_since_services = timeline.commits_since_services
        return commit

    @contextmanager
    def _decoded(
        self, events: DataFrame, buckets: Buckets | None = None
    ) -> Iterator[tuple[DataFrame, TableColumns, Survey]]:
        """The changes of a batch, held until the batch is done, with its table's columns and its survey: in
        the buckets, where there are some, those that the task which read them does not know to be
        superseded."""
        columns = self._merged_columns()
        assert columns is not None
        # A snapshot has each key once; and few tasks would keep other tables waiting for a core.
        is_folded = buckets is not None and self._columns is not None and not self._needed_by_deletes(columns)
        held, columns, survey = self._decode(events, buckets, is_folded=is_folded)
        is_of_unlearned = survey.of_unknown_schema > 0 and self._learn_versions(events)
        if is_of_unlearned or (is_folded and survey.has_moved):
            held.release()
            held, columns, survey = self._decode(events, buckets, is_folded=False)
        try:
            yield held.rows, columns, survey
        finally:
            held.release()

    def _decode(
        self, events: DataFrame, buckets: Buckets | None, *, is_folded: bool
    ) -> tuple[Held, TableColumns, Survey]:
        columns = self._merged_columns()
        assert columns is not None
        changes = decode(events, self._known_versions, columns)
        if not self.source.keeps_headers and not all(v.has_own_key for v in self._known_versions):
            changes = with_paired_moves(changes)
        survey = ChangeSurvey.beside(self.ledger)
        changes = survey.counted(changes)
        if is_folded:
            changes = partial_fold(changes)
        held = Held.in_cache(changes) if buckets is None else buckets.hold(changes)
        return held, columns, survey.of_counted()

    def _merged_columns(self) -> TableColumns | None:
        return merge(self._columns, [columns_of(version) for version in self._known_versions])

    @property
    def _known_versions(self) -> tuple[SchemaVersion, ...]:
        return (*self._declared_versions, *self._versions)

    @cached_property
    def _declared_versions(self) -> tuple[SchemaVersion, ...]:
        policy = self.hudi.policy
        if policy.columns is None:
            return ()
        return declared_versions(policy.columns, policy.key or (), self.written.decimals, self.written.times)

    def _learn_versions(self, events: DataFrame) -> bool:
        """Reads the schemas that the events bring; whether there was a new one that is a schema. One Spark
        job."""
        of_versions = (version.texts for version in self._versions if version.texts is not None)
        known = (*of_versions, *self._unreadable)
        learned: list[SchemaVersion] = []
        for row in schema_texts(events, known).collect():
            texts = SchemaTexts(row["key"], row["value"])
            try:
                learned.append(read_schema_version(texts, self.hudi.policy.key, self.written.decimals))
            except UnreadableSchema:
                # Its events go to quarantine, with the text that could not be read.
                self._unreadable = (*self._unreadable, texts)[-REMEMBERED_VERSIONS:]
        self._versions = (*self._versions[-REMEMBERED_VERSIONS:], *learned)
        return bool(learned)

    def _buckets(self, events: int) -> Buckets | None:
        """In which a batch of so many is held, if any."""
        return self.hudi.buckets(events)

    def _to_apply(self, changes: DataFrame, survey: Survey) -> DataFrame:
        """Those of good changes that the table is to get."""
        return without_applied(changes, self.ledger, survey)

    def _fold(
        self,
        changes: DataFrame,
        columns: TableColumns,
        survey: Survey,
        truncate: Truncate | None,
        buckets: Buckets | None,
    ) -> Folded:
        """`buckets`: in which the changes are."""
        is_new = truncate is not None and truncate != self.ledger.truncate
        if buckets is not None and not is_new and not self._lack_values(columns, survey, truncate):
            rows = fold_in_buckets(changes, buckets, survey, truncate, self.ledger.epoch)
            return Folded(rows, are_in_buckets=True)
        folded = self._fold_changed(changes, columns, survey, truncate)
        if truncate is None or not is_new or self._columns is None:
            return folded
        stored = self.hudi.read()
        return replace(
            folded, rows=with_truncated_rows(folded.rows, stored, columns, truncate, self.ledger.epoch)
        )

    def _fold_changed(
        self, changes: DataFrame, columns: TableColumns, survey: Survey, truncate: Truncate | None
    ) -> Folded:
        """Of the keys that the changes are of."""
        if not self._lack_values(columns, survey, truncate):
            return Folded(fold(changes, survey, truncate, self.ledger.epoch))
        carried = fold_and_carry_forward(changes, columns, survey, truncate, self.ledger.epoch)
        folded = without_needless(carried, self._needed_by_deletes(columns))
        if self._columns is not None:
            folded = complete(folded, self.hudi.read(), columns)
        is_delete = F.col("op").isin(DELETE, TRUNCATE)
        # A delete of a row that the lake never had: a soft one is kept, without values; a hard one has no
        # effect.
        is_known = (F.size("missing") == 0) | (is_delete & F.lit(self.hudi.policy.deletes == "soft"))
        return Folded(folded.where(is_known), _left_out(folded.where(~is_known & ~is_delete)))

    def _lack_values(self, columns: TableColumns, survey: Survey, truncate: Truncate | None) -> bool:
        """Whether some change of a batch does not say all that the table needs of it."""
        has_deletes = survey.deletes > 0 or truncate is not None
        return survey.has_unavailable or (has_deletes and bool(self._needed_by_deletes(columns)))

    def _needed_by_deletes(self, columns: TableColumns) -> tuple[str, ...]:
        """The columns whose values a delete has to bring."""
        policy = self.hudi.policy
        return columns.beside_key if policy.deletes == "soft" else policy.partition_by

    def _first_halved_moves(self, changes: DataFrame, ranges: tuple[OffsetRange, ...]) -> Mapping[int, int]:
        partitions = self._partitions | self.ledger.positions.keys() | {r.partition for r in ranges}
        return first_halved_moves(changes, self.ledger, is_partitioned=len(partitions) > 1)

    def _widen(self, columns: TableColumns, widened: tuple[str, ...]) -> None:
        """Writes the stored rows anew in the columns' types, so that no file is left with another one: Hudi
        refuses to write wider decimals beside narrower ones, and what a float is as a double every reader
        would say by itself."""
        stored = self.hudi.read()
        own = [name for name in (*APP_COLUMNS.fieldNames(), DELETED) if name in stored.columns]
        rows = stored.select(
            *own,
            *[F.col(name).cast(data_type) for name, data_type in columns.row if name in stored.columns],
        )
        self._timeline_to_continue()
        ledger = self.ledger.next_commit()
        self.hudi.replace_all(rows, ledger, widened)
        self._written(ledger)

    def _set_aside(self, events: DataFrame, bad: DataFrame, ranges: tuple[OffsetRange, ...]) -> None:
        """There is no table that could hold the position: a restart sets the same events aside again, once
        each."""
        count = bad.count()
        if count:
            self._check_limit(bad, count, count)
            self._quarantine(events, bad, ranges)
        self._ledger = self._ledger_after(ranges, Survey(bad=count), (), count)
        self._latest.add(count, count)

    def _check_limit(self, bad: DataFrame, events: int, set_aside: int) -> None:
        """Raises `QuarantineLimitReached`, before anything of the batch is written."""
        policy = self.hudi.policy
        if self._latest.has_room_for(events, set_aside, policy):
            return
        reasons = bad.groupBy("reason").agg(F.count("*").alias("events"), F.min(F.struct(*_POSITION)))
        found = ", ".join(
            f"{row[1]:,} {row[0]} (the first at {row[2]['partition']}:{row[2]['offset']})"
            for row in sorted(reasons.collect(), key=lambda row: -row[1])
        )
        raise QuarantineLimitReached(
            what="More events cannot be read than may be set aside, so the table stops before them",
            where=f"topic {self.topic}",
            found=f"{found}; of the {self._latest.events + events:,} latest events "
            f"{self._latest.set_aside + set_aside:,} cannot be read",
            expected=f"at most {policy.quarantine_limit} of the latest {LATEST_EVENTS:,}",
            remedy=[
                "Correct what writes to the topic.",
                EditLakeFile("raise the table's quarantine_limit to set these events aside all the same"),
            ],
        )

    def _quarantine(self, events: DataFrame, bad: DataFrame, ranges: tuple[OffsetRange, ...]) -> str:
        return write_quarantine(quarantined(events, bad), self.quarantine_path, self.ledger.epoch, ranges)

    def _ledger_after(
        self, ranges: tuple[OffsetRange, ...], survey: Survey, key: tuple[str, ...], quarantined_events: int
    ) -> Ledger:
        before = self.ledger
        sequences, sequence_ts_us = dict(before.sequences), dict(before.sequence_ts_us)
        for partition, found in survey.partitions.items():
            if found.snapshots:
                sequences.pop(partition, None)
                sequence_ts_us.pop(partition, None)
            if found.last is not None and found.last.ts_us is not None:
                last = found.last.sequence
                sequences[partition] = max(last, sequences.get(partition, last))
                sequence_ts_us[partition] = max(found.last.ts_us, sequence_ts_us.get(partition, 0))
        return replace(
            before,
            topic_id=self._topic_id or before.topic_id,
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
            ORDERING: F.col("seq"),
            "_source_ts": F.col("source_ts"),
            "_topic": F.col("topic"),
            "_partition": F.col("partition"),
            "_offset": F.col("offset"),
            LOG_POSITION: F.col("lsn"),
        }
        return folded.select(
            *[app_values[app.name].cast(app.dataType).alias(app.name) for app in APP_COLUMNS.fields],
            *([is_deleted.alias(DELETED)] if is_soft else []),
            *[F.col("row")[name].alias(name) for name in columns.names],
        )

    def _report(self, ledger: Ledger, phases: _Phases) -> Committed:
        committed_us = time.time_ns() // 1000
        commit = self._written(ledger)
        self.partitions_written = commit.partitions
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
            seconds=round(phases.total, 3),
            phases={name: round(seconds, 3) for name, seconds in phases.seconds.items()},
        )


class _Phases:
    """Seconds, by what was done in them."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def end(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now

    @property
    def total(self) -> float:
        return time.monotonic() - self._began


def _events_applied(ledger: Ledger) -> tuple[int, int]:
    return ledger.epoch, sum(ledger.positions.values())


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


def _with_moved(readable: DataFrame, good: DataFrame) -> frozenset[str]:
    """The keys of the readable events, and all under which the source knew one of their rows."""
    keys = {row["key"] for row in readable.where(F.col("key").isNotNull()).select("key").distinct().collect()}
    is_move = F.col("moved_from").isNotNull()
    moves = [(row[0], row[1]) for row in good.where(is_move).select("moved_from", "key").distinct().collect()]
    while more := {key for pair in moves if keys & set(pair) for key in pair} - keys:
        keys |= more
    return frozenset(keys)


def _not_applied(ranges: tuple[OffsetRange, ...], positions: Mapping[int, int]) -> tuple[OffsetRange, ...]:
    new = (replace(r, first=max(r.first, positions.get(r.partition, 0))) for r in ranges)
    return tuple(r for r in new if r.length > 0)


def _without_halved_moves(
    ranges: tuple[OffsetRange, ...], halved: Mapping[int, int]
) -> tuple[OffsetRange, ...]:
    """A range that long is read on: the other ranges, which get what it leaves of a batch, are then whole."""
    shorter = (
        r if r.length > MOST_EVENTS_WITHIN_A_MOVE else replace(r, until=halved.get(r.partition, r.until))
        for r in ranges
    )
    return tuple(r for r in shorter if r.length > 0)
