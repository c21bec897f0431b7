"""The survey: what one pass over a batch's changes tells the driver, so that later stages need not ask
again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import accumulate

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from spark_app.decode import CREATE, DELETE, READ, TRUNCATE, UNKNOWN_SCHEMA
from spark_app.ledger import Ledger, Sequence, SourceTimes, Truncate


@dataclass(frozen=True, order=True)
class Snapshot:
    """A snapshot of the table: when its transaction began, in microseconds, and the log position that it saw.

    All its reads carry both (io.debezium.connector.postgresql.PostgresSnapshotChangeEventSource)."""

    source_us: int
    lsn: int


@dataclass(frozen=True)
class LastStreamed:
    """Of streamed changes the highest sequence and the latest time, in microseconds; None where none has a
    time. Both are of changes at the offset `since` or later."""

    sequence: Sequence
    ts_us: int | None
    since: int


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

    @property
    def last_snapshot_began(self) -> int:
        """The offset at which it did; 0 where there is none."""
        return max(self.snapshots.values(), default=0)


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


def survey_changes(changes: DataFrame, ledger: Ledger) -> Survey:
    """One Spark job over changes (`decode.change_type`); one more each where a partition has reads of several
    snapshots, or reads and streamed changes, and where Debezium sent changes again."""
    rows = changes.groupBy("partition").agg(*_found()).collect()
    if not rows:
        return Survey()
    survey = Survey(
        changes=sum(row["changes"] for row in rows),
        bad=sum(row["bad"] for row in rows),
        of_unknown_schema=sum(row["of_unknown_schema"] for row in rows),
        inserted=sum(row["inserted"] for row in rows),
        deletes=sum(row["deletes"] for row in rows),
        has_unavailable=any(row["has_unavailable"] for row in rows),
        has_moved=any(row["has_moved"] for row in rows),
        source_times=_source_times([(tuple(row["source_us"]), row["timed"]) for row in rows if row["timed"]]),
        partitions={
            row["partition"]: PartitionSurvey(
                snapshots={Snapshot(*found): row["first_read"] for found in row["snapshots"]},
                truncates=tuple(
                    Truncate(
                        row["partition"], t["offset"], Sequence(t["commit_lsn"], t["lsn"]), t["source_us"]
                    )
                    for t in row["truncates"]
                ),
                first_lsn=row["first_lsn"],
                first_sequence=Sequence(*row["first_sequence"]) if row["first_sequence"] else None,
                last=_last_streamed(row),
            )
            for row in rows
        },
    )
    survey = _with_starts_of_snapshots(survey, changes)
    return _with_last_since_snapshot(_with_rewound(survey, changes, ledger), changes)


@cache
def _found() -> tuple[Column, ...]:
    """What is asked of each partition. No literal in it comes from a batch or a ledger: Spark compiles the
    query once, and not for each batch."""
    is_good = F.col("reason").isNull()
    is_streamed = _is_streamed()
    is_truncate = is_good & (F.col("op") == TRUNCATE)
    is_read = _is_snapshot_read()
    source_us = F.unix_micros("source_ts")
    truncate = F.struct("offset", "commit_lsn", "lsn", source_us.alias("source_us"))
    return (
        F.count("*").alias("changes"),
        F.count_if(~is_good).alias("bad"),
        F.count_if(F.col("reason") == UNKNOWN_SCHEMA).alias("of_unknown_schema"),
        F.count_if(is_good & F.col("op").isin(CREATE, READ)).alias("inserted"),
        F.count_if(is_good & (F.col("op") == DELETE)).alias("deletes"),
        F.max(F.size("unavailable") > 0).alias("has_unavailable"),
        F.max(F.col("moved_from").isNotNull() | F.col("moved_to").isNotNull()).alias("has_moved"),
        F.count(F.when(is_streamed, source_us)).alias("timed"),
        F.percentile_approx(F.when(is_streamed, source_us), _SHARES).alias("source_us"),
        _all_of(F.struct(source_us.alias("source_us"), "lsn"), is_read).alias("snapshots"),
        F.min(F.when(is_read, F.col("offset"))).alias("first_read"),
        F.min(F.when(is_good, F.col("lsn"))).alias("first_lsn"),
        _all_of(truncate, is_truncate).alias("truncates"),
        F.min(F.when(is_streamed, F.struct("commit_lsn", "lsn"))).alias("first_sequence"),
        *_found_last(is_streamed),
    )


_SHARES = [number / 20 for number in range(21)]


def _source_times(timed: list[tuple[tuple[int, ...], int]]) -> SourceTimes | None:
    """Of all partitions, from the quantiles (`_SHARES`) and the number of each one's times."""
    if not timed:
        return None
    times = sorted((time_us, changes / len(_SHARES)) for quantiles, changes in timed for time_us in quantiles)
    until = list(accumulate(changes for _, changes in times))

    def quantile(share: float) -> int:
        return times[bisect_left(until, share * until[-1])][0]

    return SourceTimes(min=times[0][0], p05=quantile(0.05), p50=quantile(0.5), max=times[-1][0])


def _is_streamed() -> Column:
    return F.col("reason").isNull() & (F.col("op") != READ)


def _is_snapshot_read() -> Column:
    """An incremental snapshot's read has a place among the streamed changes, as they have."""
    return (
        F.col("reason").isNull()
        & (F.col("op") == READ)
        & ~F.coalesce(F.col("snapshot") == "incremental", F.lit(False))
    )


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
    is_read = _is_snapshot_read()
    is_end = ~is_read | F.col("snapshot").isin("last", "last_in_data_collection")
    found = changes.agg(
        F.count_if(~is_since).alias("earlier"),
        F.count_if(is_since & is_read).alias("reads"),
        F.count_if(is_since & is_end).alias("ends"),
    ).first()
    assert found is not None
    return LastSnapshot(is_first=found["earlier"] == 0, is_whole=found["ends"] > 0 or found["reads"] == 1)


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


def _with_starts_of_snapshots(survey: Survey, changes: DataFrame) -> Survey:
    """Each partition's offset of its first read of each snapshot, where it has reads of more than one."""
    if all(len(found.snapshots) < 2 for found in survey.partitions.values()):
        return survey
    by_snapshot = changes.where(_is_snapshot_read()).groupBy(
        "partition", F.unix_micros("source_ts").alias("source_us"), "lsn"
    )
    starts: dict[int, dict[Snapshot, int]] = {partition: {} for partition in survey.partitions}
    for row in by_snapshot.agg(F.min("offset").alias("first")).collect():
        starts[row["partition"]][Snapshot(row["source_us"], row["lsn"])] = row["first"]
    return replace(
        survey,
        partitions={p: replace(found, snapshots=starts[p]) for p, found in survey.partitions.items()},
    )


def _with_rewound(survey: Survey, changes: DataFrame, ledger: Ledger) -> Survey:
    if not survey.repeats(ledger):
        return survey
    is_rewound = is_before(ledger.sequences) & _is_later_than(ledger.sequence_ts_us)
    rewound = changes.where(_is_streamed() & is_rewound)
    rows = rewound.groupBy("partition").agg(F.min("offset").alias("first")).collect()
    first = {row["partition"]: row["first"] for row in rows}
    return replace(
        survey,
        partitions={
            partition: replace(found, first_rewound=first.get(partition))
            for partition, found in survey.partitions.items()
        },
    )


def _with_last_since_snapshot(survey: Survey, changes: DataFrame) -> Survey:
    """A snapshot can be of another database, whose log positions start anew: only later ones count."""
    found_last = [(found.last, found.last_snapshot_began) for found in survey.partitions.values()]
    if not any(last is not None and last.since < began for last, began in found_last):
        return survey
    since = _where_partition(
        {p: F.col("offset") >= found.last_snapshot_began for p, found in survey.partitions.items()}
    )
    streamed = changes.where(_is_streamed() & since)
    rows = streamed.groupBy("partition").agg(*_found_last(F.lit(True))).collect()
    last = {row["partition"]: _last_streamed(row) for row in rows}
    return replace(
        survey,
        partitions={p: replace(found, last=last.get(p)) for p, found in survey.partitions.items()},
    )


def _found_last(is_streamed: Column) -> tuple[Column, Column]:
    time = F.struct(F.unix_micros("source_ts").alias("source_us"), "offset")
    return (
        F.max(F.when(is_streamed, F.struct("commit_lsn", "lsn", "offset"))).alias("last_sequence"),
        F.max(F.when(is_streamed, time)).alias("last_time"),
    )


def _last_streamed(row: Row) -> LastStreamed | None:
    last, time = row["last_sequence"], row["last_time"]
    if last is None:
        return None
    sequence = Sequence(last["commit_lsn"], last["lsn"])
    return LastStreamed(sequence, time["source_us"], min(last["offset"], time["offset"]))


def _all_of(value: Column, is_wanted: Column) -> Column:
    return F.sort_array(F.collect_set(F.when(is_wanted, value)))


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


def _is_later_than(microseconds: Mapping[int, int]) -> Column:
    source_us = F.unix_micros("source_ts")
    return _where_partition({partition: source_us > ts for partition, ts in microseconds.items()})


def _where_partition(conditions: Mapping[int, Column]) -> Column:
    # One flat CASE: a topic can have hundreds of partitions.
    cases = reduce(
        lambda case, item: case.when(F.col("partition") == item[0], item[1]), conditions.items(), F
    )
    return cases.otherwise(F.lit(False)) if conditions else F.lit(False)
