"""Compaction: merge the log files of a merge-on-read table into base files, part by part.

If the process ends at any moment, `finish_compactions` completes what it left. A compaction never counts as
complete before it began, whatever the storage's clock says."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate, takewhile

from spark_app.hudi.options import CALENDAR_OPTIONS, CLIENT_OPTIONS, compaction_options
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_files import TIMELINE
from spark_app.hudi.timeline import Timeline, content_of, read_timeline
from spark_app.steps.steps import steps

PART_MEGABYTES = 64
"""Small operations are combined into parts of this many megabytes."""

SECONDS_S3_MAY_BE_BEHIND = 10

_MEGABYTES = "TOTAL_IO_MB"
"""The key in a plan's metrics for what a compaction reads and writes of a file group (CompactionStrategy)."""


class StorageClockIsBehind(OSError):
    """By the storage's clock, a compaction completed before it was requested by the clock here."""


def compact_part(table: TableAccess, begun: str) -> bool:
    """Merge the log files of some file groups into base files.

    Return whether base files older than the instant `begun` are left that have log files. No commit may be
    written during a part, but commits may be written between two parts. The compaction of a large table takes
    minutes, during which the table would get no commit. Its tasks take seconds each, and other tables would
    get no core if these tasks had all cores. In plain PySpark, a part is the whole table, because Hudi's SQL
    procedure has no parts. Raises `StorageClockIsBehind`."""
    instant = schedule_compaction(table)
    if instant is None:
        return False
    is_more = steps().name != "plain" and _leave_a_part(table, instant, begun)
    _run(table, instant)
    complete_late_enough(table)
    return is_more


def finish_compactions(table: TableAccess) -> Timeline:
    """Run the compaction that an ended process left scheduled. Return the timeline after that.

    Readers other than Spark do not see the commits after a pending compaction. Raises `StorageClockIsBehind`.
    """
    for pending in read_timeline(table).pending.compactions[:1]:
        _run(table, pending)
    return complete_late_enough(table)


def schedule_compaction(table: TableAccess) -> str | None:
    """Plan a compaction and return its instant; None if there is nothing to compact."""
    if steps().name == "plain":
        _call(table, "schedule")
        return next(iter(read_timeline(table).pending.compactions), None)
    with table.write_client({**compaction_options(table.policy), **CLIENT_OPTIONS}) as client:
        scheduled = client.scheduleCompaction(table.java.option.empty())
        return str(scheduled.get()) if scheduled.isPresent() else None


def complete_late_enough(table: TableAccess) -> Timeline:
    """Complete compactions again that completed before they were requested. Return the timeline after that.

    In table version 6, an instant's completion time is the modification time of its file in the timeline. S3
    sets this time by its own clock, in whole seconds. The log files after a compaction have its instant in
    their names. If the compaction completed before that instant, Hudi assigns them to the earlier file slice
    and never reads their rows (HoodieFileGroup#getBaseInstantTime,
    CompletionTimeQueryViewV1#getCompletionTime). So this function writes the file once more, in a later
    second. The hidden rows are then read again. Raises `StorageClockIsBehind`."""
    timeline = read_timeline(table)
    for _ in range(SECONDS_S3_MAY_BE_BEHIND):
        if not timeline.early_compactions:
            return timeline
        time.sleep(1)
        for compaction in timeline.early_compactions:
            file = f"{TIMELINE}/{compaction.requested}.commit"
            table.files.write(file, content_of(table, compaction))
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
    """Return how many of a compaction's operations, from the first one on, form one part.

    A part leaves one core to other tables. It has more operations than that as long as they are small
    together, by what each reads and writes."""
    at_once = max(1, cores - 1)
    small = takewhile(lambda total: total < PART_MEGABYTES, accumulate(megabytes))
    return min(len(megabytes), max(at_once, len(list(small))))


def _leave_a_part(table: TableAccess, instant: str, begun: str) -> bool:
    """Remove what does not belong to this part from the scheduled plan. Return whether more is to do."""
    client = table.new_meta_client()
    plan = table.java.compaction_utils.getCompactionPlan(client, instant)
    operations = [plan.getOperations().get(n) for n in range(plan.getOperations().size())]
    newer = [operation for operation in operations if operation.getBaseInstantTime() >= begun]
    older = [operation for operation in operations if operation.getBaseInstantTime() < begun]
    megabytes = [operation.getMetrics()[_MEGABYTES] for operation in older]
    count = operations_of_part(megabytes, table.spark.sparkContext.defaultParallelism)
    if 0 < count < len(operations):
        plan.setOperations(older[:count])
        # Otherwise, the next plan would cover only partitions with commits since then.
        left_out = {operation.getPartitionPath() for operation in [*older[count:], *newer]}
        plan.setMissingSchedulePartitions(sorted(left_out))
        requested = client.getInstantGenerator().getCompactionRequestedInstant(instant)
        client.getActiveTimeline().saveToCompactionRequested(requested, plan, True)
    return count < len(older)


def _run(table: TableAccess, instant: str) -> None:
    for name, value in CALENDAR_OPTIONS.items():
        # Spark sends the session's settings only to the tasks of a query, and a compaction is not a query.
        table.spark.sparkContext.setLocalProperty(name, value)
    if steps().name == "plain":
        _call(table, "run", f", timestamp => {instant}")
        return
    with table.write_client({**compaction_options(table.policy), **CLIENT_OPTIONS}) as client:
        client.compact(instant)


def _call(table: TableAccess, operation: str, more: str = "") -> None:
    """Call Hudi's SQL procedure `run_compaction`.

    A session of its own has the table's options, because the procedure takes them from there. Its own
    parameter for options cannot hold a comma."""
    session = table.spark.newSession()
    for name, value in {**table.options, **compaction_options(table.policy)}.items():
        session.conf.set(name, value)
    path = table.path.replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"CALL run_compaction(op => '{operation}', path => '{path}'{more})").collect()
