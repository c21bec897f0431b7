"""The survey: what one pass over a batch's changes tells the driver, so that later stages need not ask
again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.decode import DELETE, READ, TRUNCATE, UNKNOWN_SCHEMA
from spark_app.ledger import Ledger, Sequence, SourceTimes

_SNAPSHOT_STARTS = ("first", "first_in_data_collection")


@dataclass(frozen=True)
class Truncate:
    """A truncate of the whole table and its place."""

    partition: int
    offset: int
    sequence: Sequence
    source_us: int


@dataclass(frozen=True)
class PartitionSurvey:
    """What a batch holds of one partition; offsets are ascending.

    `first_sequence` is the lowest sequence of its streamed changes, `last_sequence` the highest of those
    since the last snapshot began. `first_rewound` is the offset of the first change whose sequence is lower
    than the ledger's though the source committed it later than all applied ones."""

    snapshot_starts: tuple[int, ...] = ()
    truncates: tuple[Truncate, ...] = ()
    first_rewound: int | None = None
    first_sequence: Sequence | None = None
    last_sequence: Sequence | None = None
    last_sequence_ts_us: int | None = None


@dataclass(frozen=True)
class Survey:
    """What a batch holds. `has_unavailable`: an update did not know a value (unchanged TOAST)."""

    changes: int = 0
    bad: int = 0
    of_unknown_schema: int = 0
    deletes: int = 0
    has_unavailable: bool = False
    has_moved: bool = False
    source_times: SourceTimes | None = None
    partitions: Mapping[int, PartitionSurvey] = field(default_factory=dict)

    def repeats(self, ledger: Ledger) -> bool:
        """Whether some change comes before what the ledger says was applied."""
        return any(
            found.first_sequence is not None and found.first_sequence < ledger.sequences[partition]
            for partition, found in self.partitions.items()
            if partition in ledger.sequences
        )


def survey_changes(changes: DataFrame, ledger: Ledger) -> Survey:
    """One Spark job over changes (`decode.change_type`); one more where a snapshot began in the batch, and
    where Debezium sent changes again."""
    rows = changes.rollup("partition").agg(*_found()).collect()
    if not rows:
        return Survey()
    total = next(row for row in rows if row["partition"] is None)
    survey = Survey(
        changes=total["changes"],
        bad=total["bad"],
        of_unknown_schema=total["of_unknown_schema"],
        deletes=total["deletes"],
        has_unavailable=bool(total["has_unavailable"]),
        has_moved=bool(total["has_moved"]),
        source_times=SourceTimes(*total["source_us"]) if total["source_us"] else None,
        partitions={
            row["partition"]: PartitionSurvey(
                snapshot_starts=tuple(row["snapshot_starts"]),
                truncates=tuple(
                    Truncate(
                        row["partition"], t["offset"], Sequence(t["commit_lsn"], t["lsn"]), t["source_us"]
                    )
                    for t in row["truncates"]
                ),
                first_sequence=Sequence(*row["first_sequence"]) if row["first_sequence"] else None,
                last_sequence=Sequence(*row["last_sequence"]) if row["last_sequence"] else None,
                last_sequence_ts_us=row["last_sequence_ts_us"],
            )
            for row in rows
            if row["partition"] is not None
        },
    )
    return _with_sequences_since_snapshot(_with_rewound(survey, changes, ledger), changes)


@cache
def _found() -> tuple[Column, ...]:
    """What is asked of each partition. No literal in it comes from a batch or a ledger: Spark compiles the
    query once, and not for each batch."""
    is_good = F.col("reason").isNull()
    is_streamed = _is_streamed()
    is_truncate = is_good & (F.col("op") == TRUNCATE)
    is_snapshot_start = is_good & (F.col("op") == READ) & F.col("snapshot").isin(*_SNAPSHOT_STARTS)
    source_us = F.unix_micros("source_ts")
    truncate = F.struct("offset", "commit_lsn", "lsn", source_us.alias("source_us"))
    return (
        F.count("*").alias("changes"),
        F.count_if(~is_good).alias("bad"),
        F.count_if(F.col("reason") == UNKNOWN_SCHEMA).alias("of_unknown_schema"),
        F.count_if(is_good & (F.col("op") == DELETE)).alias("deletes"),
        F.max(F.size("unavailable") > 0).alias("has_unavailable"),
        F.max(F.col("moved_from").isNotNull() | F.col("moved_to").isNotNull()).alias("has_moved"),
        F.percentile_approx(F.when(is_streamed, source_us), [0.0, 0.05, 0.5, 1.0]).alias("source_us"),
        _all_of(F.col("offset"), is_snapshot_start).alias("snapshot_starts"),
        _all_of(truncate, is_truncate).alias("truncates"),
        F.min(F.when(is_streamed, F.struct("commit_lsn", "lsn"))).alias("first_sequence"),
        *_last_sequence(is_streamed),
    )


def _is_streamed() -> Column:
    return F.col("reason").isNull() & (F.col("op") != READ)


def first_halved_moves(changes: DataFrame) -> Mapping[int, int]:
    """Partition to the offset of its first delete by a changed primary key whose create is not among the
    changes.

    The two share their place in the source. Debezium sends them together, so the create is still to come. One
    Spark job."""
    is_away, is_arrival = F.col("moved_to").isNotNull(), F.col("moved_from").isNotNull()
    halves = (
        # Also one that cannot be applied has come: to wait for it would be to wait for ever.
        changes.where(is_away | is_arrival)
        .groupBy("commit_lsn", "lsn")
        .agg(
            F.min(F.when(is_away, F.struct("partition", "offset"))).alias("away"),
            F.max(is_arrival).alias("whole"),
        )
    )
    halved = halves.where(~F.col("whole")).groupBy("away.partition").agg(F.min("away.offset").alias("offset"))
    return {row["partition"]: row["offset"] for row in halved.collect()}


def snapshots_before(survey: Survey) -> Column:
    """How many snapshots the batch holds that began at or before the event."""
    starts = [
        F.when((F.col("partition") == partition) & (F.col("offset") >= start), 1).otherwise(0)
        for partition, found in survey.partitions.items()
        for start in found.snapshot_starts
    ]
    return reduce(lambda a, b: a + b, starts, F.lit(0))


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


def _with_sequences_since_snapshot(survey: Survey, changes: DataFrame) -> Survey:
    """A snapshot can be of another database, whose log positions start anew: only later ones count."""
    if not any(found.snapshot_starts and found.last_sequence for found in survey.partitions.values()):
        return survey
    snapshots = {partition: len(found.snapshot_starts) for partition, found in survey.partitions.items()}
    since = reduce(
        lambda a, b: a | b,
        [(F.col("partition") == p) & (snapshots_before(survey) == count) for p, count in snapshots.items()],
    )
    streamed = changes.where(_is_streamed() & since)
    rows = streamed.groupBy("partition").agg(*_last_sequence(F.lit(True))).collect()
    last = {row["partition"]: row for row in rows}
    return replace(
        survey,
        partitions={
            partition: replace(
                found,
                last_sequence=Sequence(*last[partition]["last_sequence"]) if partition in last else None,
                last_sequence_ts_us=last[partition]["last_sequence_ts_us"] if partition in last else None,
            )
            for partition, found in survey.partitions.items()
        },
    )


def _last_sequence(is_streamed: Column) -> tuple[Column, Column]:
    return (
        F.max(F.when(is_streamed, F.struct("commit_lsn", "lsn"))).alias("last_sequence"),
        F.max(F.when(is_streamed, F.unix_micros("source_ts"))).alias("last_sequence_ts_us"),
    )


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
    return reduce(
        lambda others, item: F.when(F.col("partition") == item[0], item[1]).otherwise(others),
        conditions.items(),
        F.lit(False),
    )
