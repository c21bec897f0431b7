"""Order: which change of a key came last in the source, and which were applied before.

Within a partition the offset is the order in which Debezium sent, and a change's place in the source is its
`source.sequence`, within one run from a snapshot on. The two differ only where Debezium, after its worker
crashed, sends changes again with new offsets: then the sequence goes back, and comes up again to where it
was."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import EPOCH_SHIFT, Ledger, Truncate
from spark_app.merge.survey import (
    Survey,
    is_at,
    is_before,
    is_since_snapshot,
    is_snapshot_read,
    snapshots_before,
)
from spark_app.wire.decode import READ
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import TakeSnapshot


class SourceRewound(TributaryError):
    """The source's log positions went back though its clock went on: it is not the database that it was."""


def source_order(survey: Survey) -> Column:
    """A struct that sorts the changes of one key as the source made them, repeated ones beside their first.

    A snapshot's read comes after all that was sent before the snapshot began, and before all that streams
    later. An incremental snapshot's read carries the log position at which it was taken, like a streamed
    change. The two halves of a changed primary key share theirs: the delete comes first."""
    return F.struct(
        snapshots_before(survey).alias("snapshots"),
        F.when(is_snapshot_read(), 0).otherwise(F.col("commit_lsn")).cast("bigint").alias("commit_lsn"),
        F.when(is_snapshot_read(), 0).otherwise(F.col("lsn")).cast("bigint").alias("lsn"),
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
        _refuse_rewound(partition, found.first_rewound, tuple(found.snapshots.values()), ledger)
    if not survey.has_moved and not survey.repeats(ledger):
        return changes
    is_streamed = F.col("op") != READ
    is_half_of_move = F.col("moved_to").isNotNull() | F.col("moved_from").isNotNull()
    is_repeated = is_before(ledger.sequences) | (is_half_of_move & is_at(ledger.sequences))
    return changes.where(~(is_streamed & ~is_since_snapshot(survey) & is_repeated))


def last_truncate(ledger: Ledger, survey: Survey) -> Truncate | None:
    """The last truncate, in the source's order, that the changes of the batch can be older than: one of the
    batch, or the ledger's, where a partition that was behind still brings changes from before it."""
    found_truncates = [
        truncate
        for partition, found in survey.partitions.items()
        for truncate in found.truncates
        if any(start <= truncate.offset for start in found.snapshots.values())
        or partition not in ledger.sequences
        or truncate.sequence >= ledger.sequences[partition]
    ]
    before = ledger.truncate
    if before is not None and (found_truncates or survey.reaches_before(before)):
        found_truncates += [before] if _is_of_this_source(before, survey) else []
    return max(found_truncates, key=lambda truncate: _place(truncate, survey), default=None)


def remembered_truncate(ledger: Ledger, survey: Survey, last: Truncate | None) -> Truncate | None:
    """The truncate that later batches have to know of. One without a log position cannot be compared."""
    if last is not None:
        return last if last.sequence.lsn > 0 else None
    before = ledger.truncate
    return before if before is not None and _is_of_this_source(before, survey) else None


def is_before_truncate(truncate: Truncate, survey: Survey) -> Column:
    """Whether a change of `source_order` came before the truncate.

    One that another partition brings is compared by its log position alone, and that is exact: a truncate
    locks the table, so all that others changed before was logged before it, and all they change later
    after."""
    snapshots, commit_lsn, lsn, offset = _place(truncate, survey)
    place = F.struct(
        F.lit(snapshots).alias("snapshots"),
        F.lit(commit_lsn).cast("bigint").alias("commit_lsn"),
        F.lit(lsn).cast("bigint").alias("lsn"),
        F.lit(0).alias("half"),
        F.lit(offset).cast("bigint").alias("offset"),
    )
    is_of_its_partition = F.col("partition") == truncate.partition
    return F.when(is_of_its_partition, F.col("order") < place).otherwise(F.col("lsn") <= lsn)


def ordering(epoch: int, offset: Column) -> Column:
    """`_seq`: the place of an event among all of its partition, over all epochs of the topic."""
    return F.lit(epoch << EPOCH_SHIFT) + offset


def seq_of_truncate(truncate: Truncate, epoch: int, partition: Column, seq: Column) -> Column:
    """`_seq` of a row that the truncate ends, from the partition and `_seq` of its last change.

    Offsets of two partitions say nothing of each other."""
    is_of_its_partition = partition == truncate.partition
    return F.when(is_of_its_partition, ordering(epoch, F.lit(truncate.offset).cast("bigint"))).otherwise(seq)


def _place(truncate: Truncate, survey: Survey) -> tuple[int, int, int, int]:
    sequence = truncate.sequence
    return _snapshots_until(truncate, survey), sequence.commit_lsn, sequence.lsn, truncate.offset


def _is_of_this_source(truncate: Truncate, survey: Survey) -> bool:
    """False where a later snapshot saw a lower log position: it is of another database."""
    return not any(
        snapshot.source_us > truncate.source_us and snapshot.lsn < truncate.sequence.lsn
        for snapshot in survey.snapshots
    )


def _snapshots_until(truncate: Truncate, survey: Survey) -> int:
    starts = (
        survey.partitions[truncate.partition].snapshots if truncate.partition in survey.partitions else {}
    )
    return sum(
        starts[snapshot] <= truncate.offset if snapshot in starts else snapshot.lsn <= truncate.sequence.lsn
        for snapshot in survey.snapshots
    )


def _refuse_rewound(
    partition: int, first: int | None, snapshot_starts: tuple[int, ...], ledger: Ledger
) -> None:
    if first is None or any(start <= first for start in snapshot_starts):
        return
    raise SourceRewound(
        what="The source's log went back: the database was restored from a backup or replaced by another one",
        where=f"topic {ledger.topic}, partition {partition}, offset {first}",
        found="a change with a lower log sequence number and a later commit time than the last applied one",
        expected=f"a log sequence number of {ledger.sequences[partition].lsn} or more",
        remedy=TakeSnapshot(),
    )
