"""Compaction: merges the log files of a merge-on-read table into base files, part by part.

An end of the process at any moment leaves what `finish_compactions` completes. A compaction never counts as
complete before it began, whatever the storage's clock says."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate, takewhile

from spark_app.hudi.options import CALENDAR_OPTIONS, compaction_options
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TIMELINE
from spark_app.hudi.timeline import Timeline, content_of, read_timeline

PART_MEGABYTES = 64
"""Small operations are put together into parts of so many megabytes."""

SECONDS_S3_MAY_BE_BEHIND = 10

_MEGABYTES = "TOTAL_IO_MB"
"""What a compaction reads and writes of a file group, among the metrics of its plan (CompactionStrategy)."""


class StorageClockIsBehind(OSError):
    """A compaction completed, by the storage's clock, before it was requested by the clock here."""


def compact_part(table: TableAccess, begun: str) -> bool:
    """Merge the log files of some file groups into base files.

    Return whether base files older than the instant `begun` are left that have log files. No commit may be
    written meanwhile; between two parts, commits may be. The compaction of a large table takes minutes, in
    which the table would get no commit; and its tasks take seconds each, for which other tables would get no
    core if all tasks had one. Raises `StorageClockIsBehind`."""
    instant = schedule_compaction(table)
    if instant is None:
        return False
    is_more = _leave_a_part(table, instant, begun)
    _run(table, instant)
    complete_late_enough(table)
    return is_more


def finish_compactions(table: TableAccess) -> Timeline:
    """Run the compaction that an end of the process left scheduled, and return the timeline as it is then.

    Readers other than Spark do not see the commits after a pending compaction. Raises
    `StorageClockIsBehind`."""
    pending = table.new_meta_client().getActiveTimeline().filterPendingCompactionTimeline().firstInstant()
    if pending.isPresent():
        _run(table, pending.get().requestedTime())
    return complete_late_enough(table)


def schedule_compaction(table: TableAccess) -> str | None:
    """Plan a compaction and return its instant; None where there is nothing to compact."""
    with table.write_client(compaction_options(table.policy)) as client:
        scheduled = client.scheduleCompaction(table.java.option.empty())
        return str(scheduled.get()) if scheduled.isPresent() else None


def complete_late_enough(table: TableAccess) -> Timeline:
    """Complete those compactions again that completed before they were requested; return the timeline then.

    In table version 6 an instant's completion time is the modification time of its file in the timeline. S3
    gives that by its own clock and in whole seconds. The log files after a compaction have its instant in
    their names. Where the compaction completed before that instant, Hudi counts them to the file slice before
    it and never reads their rows (HoodieFileGroup#getBaseInstantTime,
    CompletionTimeQueryViewV1#getCompletionTime). So the file is written once more, in a later second; the
    rows that it had hidden are then read again. Raises `StorageClockIsBehind`."""
    timeline = read_timeline(table)
    for _ in range(SECONDS_S3_MAY_BE_BEHIND):
        if not timeline.early_compactions:
            return timeline
        time.sleep(1)
        for compaction in timeline.early_compactions:
            file = f"{TIMELINE}/{compaction.requested}.commit"
            table.files.write(file, content_of(timeline, compaction))
        timeline = read_timeline(table)
    if timeline.early_compactions:
        early = timeline.early_compactions[0]
        raise StorageClockIsBehind(
            f"{table.path} was compacted at {early.requested} by the clock here and, by that of its "
            f"storage, at {early.completed} (UTC): set both right, or wait until the latter is past the "
            "former"
        )
    return timeline


def operations_of_part(megabytes: Sequence[float], cores: int) -> int:
    """Return how many of a compaction's operations, from the first one on, are one part.

    They leave a core to others. As long as they are small together, by what each reads and writes, there are
    more."""
    at_once = max(1, cores - 1)
    small = takewhile(lambda total: total < PART_MEGABYTES, accumulate(megabytes))
    return min(len(megabytes), max(at_once, len(list(small))))


def _leave_a_part(table: TableAccess, instant: str, begun: str) -> bool:
    """Take everything out of the scheduled plan that is not for this part; return whether more is to do."""
    client = table.new_meta_client()
    plan = table.java.compaction_utils.getCompactionPlan(client, instant)
    operations = [plan.getOperations().get(n) for n in range(plan.getOperations().size())]
    newer = [operation for operation in operations if operation.getBaseInstantTime() >= begun]
    older = [operation for operation in operations if operation.getBaseInstantTime() < begun]
    megabytes = [operation.getMetrics()[_MEGABYTES] for operation in older]
    count = operations_of_part(megabytes, table.spark.sparkContext.defaultParallelism)
    if 0 < count < len(operations):
        plan.setOperations(older[:count])
        # Without this, the next plan would be for those partitions alone that have had commits since.
        left_out = {operation.getPartitionPath() for operation in [*older[count:], *newer]}
        plan.setMissingSchedulePartitions(sorted(left_out))
        requested = client.getInstantGenerator().getCompactionRequestedInstant(instant)
        client.getActiveTimeline().saveToCompactionRequested(requested, plan, True)
    return count < len(older)


def _run(table: TableAccess, instant: str) -> None:
    for name, value in CALENDAR_OPTIONS.items():
        # Spark sends the session's settings to the tasks of a query only, and a compaction is none.
        table.spark.sparkContext.setLocalProperty(name, value)
    with table.write_client(compaction_options(table.policy)) as client:
        client.compact(instant)
