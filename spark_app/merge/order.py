"""The order of changes: which one of a key came last in the source, and which were applied before.

Within a partition, the offset is the order in which Debezium sent the changes. After a snapshot, the position
is the order in which the source committed them. The two orders differ only after a crash of Debezium's
worker. Debezium then sends changes again with new offsets: the position goes back, and then rises again to
where it was."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import EPOCH_SHIFT, Ledger, Truncate
from spark_app.merge.by_partition import is_at, is_before, where_partition
from spark_app.merge.snapshots import is_since_snapshot, is_snapshot_read, snapshots_before
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import NOWHERE
from spark_app.wire.decode import READ
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import TakeSnapshot


class SourceRewound(TributaryError):
    """The source's positions went back although its clock did not: it is another database than before."""


def source_order(survey: Survey) -> Column:
    """Return a struct that sorts the changes of one key in the order of the source.

    A repeated change sorts beside its first. A snapshot's read sorts after everything that was sent before
    the snapshot began, and before everything that streams later. An incremental snapshot's read has the
    position at which it was taken, like a streamed change. The two halves of a changed primary key have the
    same position: the delete comes first."""
    return F.struct(
        snapshots_before(survey).alias("snapshots"),
        F.when(is_snapshot_read(), F.lit(NOWHERE)).otherwise(F.col("position")).alias("position"),
        F.when(F.col("moved_from").isNotNull(), 1).otherwise(0).alias("half"),
        F.col("offset"),
    )


def without_applied(changes: DataFrame, ledger: Ledger, survey: Survey) -> DataFrame:
    """Return the changes without those that Debezium had sent, and the table applied, before.

    Such a change has a lower position than the highest applied one. A change at exactly the highest applied
    position stays: several rows can share a position, and applying the last one again changes nothing. The
    two halves of a changed primary key do not stay. They have a position to themselves, and either both were
    applied or neither was. Raises `SourceRewound` where the position went back and the source's clock did
    not."""
    for partition, found in survey.partitions.items():
        _refuse_rewound(partition, found.first_rewound, tuple(found.snapshots.values()), ledger)
    if not survey.has_moved and not survey.repeats(ledger):
        return changes
    is_streamed = F.col("op") != READ
    is_half_of_move = F.col("moved_to").isNotNull() | F.col("moved_from").isNotNull()
    is_repeated = is_before(ledger.applied) | (is_half_of_move & is_at(ledger.applied))
    return changes.where(~(is_streamed & ~is_since_snapshot(survey) & is_repeated))


def without_repeated_transactions(changes: DataFrame, survey: Survey) -> DataFrame:
    """Return the changes without those that follow a higher position of their partition. One Spark job.

    For a log in which all changes of a transaction share a position. Debezium has sent a transaction as a
    whole before it sends the next one, so such a change is repeated. A batch can end within a repeated
    transaction. Then the last change of a key that it holds is not the last one of the transaction."""
    streamed = (F.col("op") != READ) & where_partition(
        {
            partition: F.col("offset") >= max(found.snapshots.values(), default=0)
            for partition, found in survey.partitions.items()
        }
    )
    highest = {
        partition: found.last.position
        for partition, found in survey.partitions.items()
        if found.last is not None
    }
    at_highest = changes.where(streamed & is_at(highest)).groupBy("partition")
    reached = {
        row["partition"]: row["offset"] for row in at_highest.agg(F.min("offset").alias("offset")).collect()
    }
    is_after = where_partition({partition: F.col("offset") > offset for partition, offset in reached.items()})
    return changes.where(~(streamed & is_before(highest) & is_after))


def last_truncate(ledger: Ledger, survey: Survey) -> Truncate | None:
    """Return the last truncate, in the source's order, that some change of the batch can be older than.

    It is one of the batch, or the ledger's if a partition that was behind still brings earlier changes."""
    found_truncates = [
        truncate
        for partition, found in survey.partitions.items()
        for truncate in found.truncates
        if any(start <= truncate.offset for start in found.snapshots.values())
        or partition not in ledger.applied
        or truncate.position >= ledger.applied[partition]
    ]
    before = ledger.truncate
    if before is not None and (found_truncates or survey.reaches_before(before)):
        found_truncates += [before] if _is_of_this_source(before, survey) else []
    return max(found_truncates, key=lambda truncate: _place(truncate, survey), default=None)


def remembered_truncate(ledger: Ledger, survey: Survey, last: Truncate | None) -> Truncate | None:
    """Return the truncate that later batches have to know: one that can be compared by its position."""
    if last is not None:
        return last if last.log_position != NOWHERE else None
    before = ledger.truncate
    return before if before is not None and _is_of_this_source(before, survey) else None


def is_before_truncate(truncate: Truncate, survey: Survey) -> Column:
    """Return whether a change with a `source_order` came before the truncate.

    A change from another partition is compared by its place in the log. This is exact because a truncate
    locks the table: other sessions' earlier changes are logged before it, and their later changes after it.
    """
    snapshots, position, offset = _place(truncate, survey)
    place = F.struct(
        F.lit(snapshots).alias("snapshots"),
        F.lit(position).alias("position"),
        F.lit(0).alias("half"),
        F.lit(offset).cast("bigint").alias("offset"),
    )
    is_of_its_partition = F.col("partition") == truncate.partition
    is_logged_before = F.col("log_position") <= F.lit(truncate.log_position)
    return F.when(is_of_its_partition, F.col("order") < place).otherwise(is_logged_before)


def ordering(epoch: int, offset: Column) -> Column:
    """Return `_seq`, `bigint`: the place of an event in its partition, over all epochs of the topic."""
    return F.lit(epoch << EPOCH_SHIFT) + offset


def seq_of_truncate(truncate: Truncate, epoch: int, partition: Column, seq: Column) -> Column:
    """Return `_seq` of a row that the truncate ends, from the partition and `_seq` of its last change.

    The truncate's offset counts only in its own partition: offsets of two partitions cannot be compared."""
    is_of_its_partition = partition == truncate.partition
    return F.when(is_of_its_partition, ordering(epoch, F.lit(truncate.offset).cast("bigint"))).otherwise(seq)


def _place(truncate: Truncate, survey: Survey) -> tuple[int, bytes, int]:
    return _snapshots_until(truncate, survey), truncate.position, truncate.offset


def _is_of_this_source(truncate: Truncate, survey: Survey) -> bool:
    """Return False if a later snapshot saw an earlier place of the log, and so is of another database."""
    return truncate.source_us is None or not any(
        snapshot.source_us > truncate.source_us and snapshot.log_position < truncate.log_position
        for snapshot in survey.snapshots
    )


def _snapshots_until(truncate: Truncate, survey: Survey) -> int:
    starts = (
        survey.partitions[truncate.partition].snapshots if truncate.partition in survey.partitions else {}
    )
    return sum(
        starts[snapshot] <= truncate.offset
        if snapshot in starts
        else snapshot.log_position <= truncate.log_position
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
        found="a change with a lower position and a later commit time than the last applied one",
        expected=f"position {ledger.applied[partition].hex()} or a higher one",
        remedy=TakeSnapshot(),
    )
