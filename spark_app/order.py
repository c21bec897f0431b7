"""Order: which change of a key came last in the source, and which were applied before.

Within a partition the offset is the order in which Debezium sent, and a change's place in the source is its
`source.sequence`, within one run from a snapshot on. The two differ only where Debezium, after its worker
crashed, sends changes again with new offsets: then the sequence goes back, and comes up again to where it
was."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contract.errors import TributaryError
from spark_app.decode import READ
from spark_app.ledger import EPOCH_SHIFT, Ledger
from spark_app.survey import Survey, Truncate, is_at, is_before, snapshots_before


class SourceRewound(TributaryError):
    """The source's log positions went back though its clock went on: it is not the database that it was."""


def source_order(survey: Survey) -> Column:
    """A struct that sorts the changes of one key as the source made them, repeated ones beside their first.

    A snapshot's read comes after all that was sent before the snapshot began, and before all that streams
    later. An incremental snapshot's read carries the log position at which it was taken, like a streamed
    change. The two halves of a changed primary key share theirs: the delete comes first."""
    is_snapshot = (F.col("op") == READ) & (F.col("snapshot") != "incremental")
    return F.struct(
        snapshots_before(survey).alias("snapshots"),
        F.when(is_snapshot, 0).otherwise(F.col("commit_lsn")).cast("bigint").alias("commit_lsn"),
        F.when(is_snapshot, 0).otherwise(F.col("lsn")).cast("bigint").alias("lsn"),
        F.when(F.col("moved_from").isNotNull(), 1).otherwise(0).alias("half"),
        F.col("offset"),
    )


def without_applied(changes: DataFrame, ledger: Ledger, survey: Survey) -> DataFrame:
    """The changes less those which the table holds already because Debezium had sent them before.

    Such a change has a lower sequence than the highest that was applied. One of the same sequence is kept:
    several rows can share an LSN, and to apply the last one again changes nothing. Not so the two halves of a
    changed primary key, which have an LSN of their own and are never applied one without the other. Raises
    `SourceRewound` where the sequence went back and the source's clock did not."""
    for partition, found in survey.partitions.items():
        _refuse_rewound(partition, found.first_rewound, found.snapshot_starts, ledger)
    if not survey.has_moved and not survey.repeats(ledger):
        return changes
    is_streamed = F.col("op") != READ
    is_half_of_move = F.col("moved_to").isNotNull() | F.col("moved_from").isNotNull()
    is_repeated = is_before(ledger.sequences) | (is_half_of_move & is_at(ledger.sequences))
    return changes.where(~(is_streamed & (snapshots_before(survey) == 0) & is_repeated))


def last_truncate(ledger: Ledger, survey: Survey) -> Truncate | None:
    """The last truncate in the batch, in the source's order, that was not applied before."""
    new = [
        truncate
        for partition, found in survey.partitions.items()
        for truncate in found.truncates
        if _snapshots_until(truncate, survey) > 0
        or partition not in ledger.sequences
        or truncate.sequence >= ledger.sequences[partition]
    ]
    return max(new, key=lambda truncate: _place(truncate, survey), default=None)


def is_before_truncate(truncate: Truncate, survey: Survey) -> Column:
    """Whether a change of `source_order` came before the truncate."""
    snapshots, commit_lsn, lsn, offset = _place(truncate, survey)
    return F.col("order") < F.struct(
        F.lit(snapshots).alias("snapshots"),
        F.lit(commit_lsn).cast("bigint").alias("commit_lsn"),
        F.lit(lsn).cast("bigint").alias("lsn"),
        F.lit(0).alias("half"),
        F.lit(offset).cast("bigint").alias("offset"),
    )


def ordering(epoch: int, offset: Column) -> Column:
    """`_seq`: the place of an event among all of its partition, over all epochs of the topic."""
    return F.lit(epoch << EPOCH_SHIFT) + offset


def _place(truncate: Truncate, survey: Survey) -> tuple[int, int, int, int]:
    sequence = truncate.sequence
    return _snapshots_until(truncate, survey), sequence.commit_lsn, sequence.lsn, truncate.offset


def _snapshots_until(truncate: Truncate, survey: Survey) -> int:
    return sum(start <= truncate.offset for start in survey.partitions[truncate.partition].snapshot_starts)


def _refuse_rewound(
    partition: int, first: int | None, snapshot_starts: tuple[int, ...], ledger: Ledger
) -> None:
    if first is None or (snapshot_starts and snapshot_starts[0] <= first):
        return
    raise SourceRewound(
        what="The source's log went back: the database was restored from a backup or replaced by another one",
        where=f"topic {ledger.topic}, partition {partition}, offset {first}",
        found="a change with a lower log sequence number and a later commit time than the last applied one",
        expected=f"a log sequence number of {ledger.sequences[partition].lsn} or more",
        remedy="Let the connector take a new snapshot: delete its offsets and its replication slot.",
    )
