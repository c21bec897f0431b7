"""The survey: what one pass over a batch's changes tells the driver, so that later stages need not ask
again."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_app.ledger.ledger import Ledger, Sequence, SourceTimes, Truncate
from spark_app.wire.decode import READ


@dataclass(frozen=True, order=True)
class Snapshot:
    """A snapshot of the table: when its transaction began, in microseconds, and the log position that it saw.

    All its reads carry both (io.debezium.connector.postgresql.PostgresSnapshotChangeEventSource)."""

    source_us: int
    lsn: int


@dataclass(frozen=True)
class LastStreamed:
    """Of streamed changes the highest sequence and the latest time, in microseconds; None where none has a
    time."""

    sequence: Sequence
    ts_us: int | None


@dataclass(frozen=True)
class PartitionSurvey:
    """What a batch holds of one partition; offsets are ascending.

    `snapshots` gives the offset of the first read of each. `first_lsn` is the lowest log position of a
    change, `first_sequence` the lowest sequence of its streamed changes, `last` what the last of those is
    that came since the last snapshot began. `first_rewound` is the offset of the first change whose sequence
    is lower than the ledger's though the source committed it later than all applied ones."""

    snapshots: Mapping[Snapshot, int] = field(default_factory=dict)
    truncates: tuple[Truncate, ...] = ()
    first_rewound: int | None = None
    first_lsn: int | None = None
    first_sequence: Sequence | None = None
    last: LastStreamed | None = None


@dataclass(frozen=True)
class Survey:
    """What a batch holds. `inserted`: creates and reads. `has_unavailable`: an update did not know a value
    (unchanged TOAST)."""

    changes: int = 0
    bad: int = 0
    of_unknown_schema: int = 0
    inserted: int = 0
    deletes: int = 0
    has_unavailable: bool = False
    has_moved: bool = False
    source_times: SourceTimes | None = None
    partitions: Mapping[int, PartitionSurvey] = field(default_factory=dict)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """Those of all partitions, as the source made them."""
        return tuple(sorted({snapshot for found in self.partitions.values() for snapshot in found.snapshots}))

    def reaches_before(self, truncate: Truncate) -> bool:
        """Whether some change is older than the truncate."""
        lsn = truncate.sequence.lsn
        return any(
            found.first_lsn is not None and found.first_lsn <= lsn for found in self.partitions.values()
        )

    def repeats(self, ledger: Ledger) -> bool:
        """Whether some change comes before what the ledger says was applied."""
        return any(
            found.first_sequence is not None and found.first_sequence < ledger.sequences[partition]
            for partition, found in self.partitions.items()
            if partition in ledger.sequences
        )


@dataclass(frozen=True)
class ChangeSurvey:
    """The survey of changes while they are worked out, by whatever query does that; the Java class of that
    name."""

    java: Any

    @staticmethod
    def beside(ledger: Ledger) -> ChangeSurvey:
        """Of changes that may come before what the ledger says was applied."""
        spark = SparkSession.active()
        jvm: Any = spark._jvm
        applied = {
            partition: (sequence.commit_lsn, sequence.lsn, ledger.sequence_ts_us[partition])
            for partition, sequence in ledger.sequences.items()
            if partition in ledger.sequence_ts_us
        }
        survey = jvm.io.tributary.spark.ChangeSurvey.of(spark._jsparkSession, json.dumps(applied))
        return ChangeSurvey(survey)

    def counted(self, changes: DataFrame) -> DataFrame:
        """The same changes (`decode.change_type`)."""
        return DataFrame(self.java.counted(changes._jdf), changes.sparkSession)

    def of_counted(self) -> Survey:
        """Of the changes that were worked out, which must be all."""
        return _survey([_Found(**found) for found in json.loads(self.java.found())])


def survey_changes(changes: DataFrame, ledger: Ledger) -> Survey:
    """Of changes (`decode.change_type`). One Spark job."""
    survey = ChangeSurvey.beside(ledger)
    survey.counted(changes).write.format("noop").mode("overwrite").save()
    return survey.of_counted()


@dataclass(frozen=True)
class _Found:
    """What a task reports of the changes of a partition: the fields of ChangeSurvey.Found in Java."""

    partition: int
    changes: int
    bad: int
    of_unknown_schema: int
    inserted: int
    deletes: int
    has_unavailable: bool
    has_moved: bool
    first_lsn: int | None
    first_sequence: list[int] | None
    first_rewound: int | None
    snapshots: list[list[int]]
    truncates: list[list[int]]
    highest_sequences: dict[str, list[int]]
    latest_times: dict[str, list[int]]
    timed: int
    times: list[int]


def _survey(found: list[_Found]) -> Survey:
    by_partition: dict[int, list[_Found]] = {}
    for task in found:
        by_partition.setdefault(task.partition, []).append(task)
    return Survey(
        changes=sum(task.changes for task in found),
        bad=sum(task.bad for task in found),
        of_unknown_schema=sum(task.of_unknown_schema for task in found),
        inserted=sum(task.inserted for task in found),
        deletes=sum(task.deletes for task in found),
        has_unavailable=any(task.has_unavailable for task in found),
        has_moved=any(task.has_moved for task in found),
        source_times=_source_times([(task.times, task.timed) for task in found if task.timed]),
        partitions={
            partition: _partition_survey(partition, tasks) for partition, tasks in by_partition.items()
        },
    )


def _partition_survey(partition: int, tasks: list[_Found]) -> PartitionSurvey:
    snapshots: dict[Snapshot, int] = {}
    for source_us, lsn, offset in (snapshot for task in tasks for snapshot in task.snapshots):
        snapshot = Snapshot(source_us, lsn)
        snapshots[snapshot] = min(offset, snapshots.get(snapshot, offset))
    truncates = sorted(truncate for task in tasks for truncate in task.truncates)
    return PartitionSurvey(
        snapshots=snapshots,
        truncates=tuple(
            Truncate(partition, offset, Sequence(commit_lsn, lsn), source_us)
            for offset, commit_lsn, lsn, source_us in truncates
        ),
        first_rewound=_lowest(task.first_rewound for task in tasks),
        first_lsn=_lowest(task.first_lsn for task in tasks),
        first_sequence=_lowest(Sequence(*task.first_sequence) for task in tasks if task.first_sequence),
        last=_last_streamed(tasks, since=max(snapshots.values(), default=0)),
    )


def _last_streamed(tasks: list[_Found], since: int) -> LastStreamed | None:
    """Of offsets from that of the last snapshot on: it can be of another database, whose log positions start
    anew."""

    def values(by_offset: Iterable[dict[str, list[int]]]) -> Iterator[list[int]]:
        return (value for of_task in by_offset for offset, value in of_task.items() if int(offset) >= since)

    highest = max(values(task.highest_sequences for task in tasks), default=None)
    if highest is None:
        return None
    latest = max(values(task.latest_times for task in tasks), default=None)
    return LastStreamed(Sequence(*highest), None if latest is None else latest[0])


def _source_times(timed: list[tuple[list[int], int]]) -> SourceTimes | None:
    """Of all changes, from the quantiles and the number of each task's times."""
    if not timed:
        return None
    times = sorted(
        (time_us, changes / len(quantiles)) for quantiles, changes in timed for time_us in quantiles
    )
    until = list(accumulate(changes for _, changes in times))

    def quantile(share: float) -> int:
        return times[bisect_left(until, share * until[-1])][0]

    return SourceTimes(min=times[0][0], p05=quantile(0.05), p50=quantile(0.5), max=times[-1][0])


_Ordered = TypeVar("_Ordered", int, Sequence)


def _lowest(values: Iterable[_Ordered | None]) -> _Ordered | None:
    return min((value for value in values if value is not None), default=None)


def first_halved_moves(changes: DataFrame, ledger: Ledger, *, is_partitioned: bool) -> Mapping[int, int]:
    """Partition to the offset of its first half of a changed primary key whose other half is still to come.

    The two share their place in the source. In one partition Debezium sends the delete right before the
    create; of several, any can be ahead (`is_partitioned`). Halves that were applied before are not waited
    for. One Spark job."""
    is_away, is_arrival = F.col("moved_to").isNotNull(), F.col("moved_from").isNotNull()
    same_place = Window.partitionBy("commit_lsn", "lsn")
    has_place = F.col("reason").isNull() | (F.col("lsn") > 0)
    is_applied = is_before(ledger.sequences) | is_at(ledger.sequences)
    # Also one that cannot be applied has come: to wait for it would be to wait for ever.
    halves = changes.where((is_away | is_arrival) & has_place & ~is_applied).select(
        "partition",
        "offset",
        is_away.alias("is_away"),
        F.max(is_away).over(same_place).alias("has_away"),
        F.max(is_arrival).over(same_place).alias("has_arrival"),
    )
    is_halved = ~F.col("has_arrival")
    if is_partitioned:
        is_halved = is_halved | ~F.col("has_away")
    halved = halves.where(is_halved).groupBy("partition").agg(F.min("offset").alias("offset"))
    return {row["partition"]: row["offset"] for row in halved.collect()}


def snapshots_before(survey: Survey) -> Column:
    """How many snapshots the batch holds that began at or before the event.

    In a partition without a read of the snapshot, its place in the source's log tells."""
    began = [_is_since(snapshot, survey).cast("int") for snapshot in survey.snapshots]
    return reduce(lambda a, b: a + b, began, F.lit(0))


@dataclass(frozen=True)
class LastSnapshot:
    """`is_first`: nothing came before it. `is_whole`: all of its reads are there.

    In partitions other than that of its end a read can still be missing, for as long as Kafka or the sink
    takes to bring it."""

    is_first: bool
    is_whole: bool


def is_since_last_snapshot(survey: Survey) -> Column:
    """Whether a change is one of the last snapshot that the batch holds, or came after it began."""
    return snapshots_before(survey) == len(survey.snapshots)


def read_last_snapshot(changes: DataFrame, survey: Survey) -> LastSnapshot:
    """Of changes with the columns `op`, `snapshot` and those of their place. One Spark job.

    Debezium marks a table's last read, but not where it is also the first read of the whole snapshot
    (RelationalSnapshotChangeEventSource.SnapshotMarkerResolver); and it streams only after the last read."""
    is_since = is_since_last_snapshot(survey)
    is_read = is_snapshot_read()
    is_end = ~is_read | F.col("snapshot").isin("last", "last_in_data_collection")
    found = changes.agg(
        F.count_if(~is_since).alias("earlier"),
        F.count_if(is_since & is_read).alias("reads"),
        F.count_if(is_since & is_end).alias("ends"),
    ).first()
    assert found is not None
    return LastSnapshot(is_first=found["earlier"] == 0, is_whole=found["ends"] > 0 or found["reads"] == 1)


def is_snapshot_read() -> Column:
    """Whether a change is a read of a snapshot other than an incremental one, whose reads have a place among
    the streamed changes, as they have."""
    return (
        F.col("reason").isNull()
        & (F.col("op") == READ)
        & ~F.coalesce(F.col("snapshot") == "incremental", F.lit(False))
    )


def is_since_snapshot(survey: Survey) -> Column:
    """Whether the batch holds a read of a snapshot at or before the event, in its partition."""
    firsts = {
        partition: F.col("offset") >= min(found.snapshots.values())
        for partition, found in survey.partitions.items()
        if found.snapshots
    }
    return _where_partition(firsts)


def _is_since(snapshot: Snapshot, survey: Survey) -> Column:
    starts = {
        partition: found.snapshots[snapshot]
        for partition, found in survey.partitions.items()
        if snapshot in found.snapshots
    }
    by_offset = _where_partition({p: F.col("offset") >= start for p, start in starts.items()})
    is_read_there = F.col("partition").isin(*starts)
    return F.when(is_read_there, by_offset).otherwise(F.col("lsn") >= snapshot.lsn)


def is_before(sequences: Mapping[int, Sequence]) -> Column:
    """Whether the change's sequence is lower than that of its partition."""
    return _where_partition(
        {partition: F.struct("commit_lsn", "lsn") < _place(of) for partition, of in sequences.items()}
    )


def is_at(sequences: Mapping[int, Sequence]) -> Column:
    """Whether the change's sequence is that of its partition."""
    return _where_partition(
        {partition: F.struct("commit_lsn", "lsn") == _place(of) for partition, of in sequences.items()}
    )


def _place(of: Sequence) -> Column:
    return F.struct(
        F.lit(of.commit_lsn).cast("bigint").alias("commit_lsn"), F.lit(of.lsn).cast("bigint").alias("lsn")
    )


def _where_partition(conditions: Mapping[int, Column]) -> Column:
    # One flat CASE: a topic can have hundreds of partitions.
    cases = reduce(
        lambda case, item: case.when(F.col("partition") == item[0], item[1]), conditions.items(), F
    )
    return cases.otherwise(F.lit(False)) if conditions else F.lit(False)
