"""Where the changes of a batch stand among the snapshots that it holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.merge.by_partition import where_partition
from spark_app.merge.survey import Snapshot, Survey
from spark_app.wire.decode import READ


@dataclass(frozen=True)
class LastSnapshot:
    """The part of its last snapshot that a batch holds.

    is_first  nothing came before it
    is_whole  its end is there; reads of other partitions can still be missing, until Kafka or the sink has
              brought them
    """

    is_first: bool
    is_whole: bool


def snapshots_before(survey: Survey) -> Column:
    """Return how many of the batch's snapshots began at or before a change, `int`.

    In a partition without a read of a snapshot, the change's place in the log decides."""
    began = [_is_since(snapshot, survey).cast("int") for snapshot in survey.snapshots]
    return reduce(lambda a, b: a + b, began, F.lit(0))


def is_since_last_snapshot(survey: Survey) -> Column:
    """Return whether a change belongs to the batch's last snapshot, or came after it began."""
    return snapshots_before(survey) == len(survey.snapshots)


def is_since_snapshot(survey: Survey) -> Column:
    """Return whether the change's partition has a read of a snapshot at or before the change."""
    firsts = {
        partition: F.col("offset") >= min(found.snapshots.values())
        for partition, found in survey.partitions.items()
        if found.snapshots
    }
    return where_partition(firsts)


def is_snapshot_read() -> Column:
    """Return whether a change is a read of a snapshot, except an incremental one.

    The reads of an incremental snapshot have a position among the streamed changes."""
    return (
        F.col("reason").isNull()
        & (F.col("op") == READ)
        & ~F.coalesce(F.col("snapshot") == "incremental", F.lit(False))
    )


def read_last_snapshot(changes: DataFrame, survey: Survey) -> LastSnapshot:
    """Return how much of the batch's last snapshot the changes (`decode.change_type`) hold. One Spark job.

    Debezium marks a table's last read, except if it is also the first read of the whole snapshot
    (RelationalSnapshotChangeEventSource.SnapshotMarkerResolver). It streams only after the last read."""
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


def _is_since(snapshot: Snapshot, survey: Survey) -> Column:
    starts = {
        partition: found.snapshots[snapshot]
        for partition, found in survey.partitions.items()
        if snapshot in found.snapshots
    }
    by_offset = where_partition({p: F.col("offset") >= start for p, start in starts.items()})
    is_read_there = F.col("partition").isin(*starts)
    return F.when(is_read_there, by_offset).otherwise(F.col("log_position") >= F.lit(snapshot.log_position))
