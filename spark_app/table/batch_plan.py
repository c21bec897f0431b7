"""The plan of a batch: what to do with its changes. Decided without Spark, from the survey and the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_app.columns.table_columns import TableColumns
from spark_app.ledger.ledger import Ledger, Truncate
from spark_app.merge.order import last_truncate, remembered_truncate
from spark_app.merge.survey import Survey
from spark_app.positions.source_log import NOWHERE
from spark_app.sources.event import EVENTS_OF_ONE_TASK, OffsetRange
from spark_app.table.table_state import TableState
from tributary.contract.lake import TablePolicy

MOST_EVENTS_WITHIN_A_MOVE = 100_000
"""After this many events, the second half of a key change will no longer come.

Debezium repeats far fewer events after a crash between the two halves."""


@dataclass(frozen=True)
class BatchPlan:
    """How to fold a batch, and which stored rows it needs.

    columns              the table's columns after the batch
    truncate             the last truncate that a change of the batch can be older than
    ends_stored_rows     the truncate is new, so it also ends the rows that only the table holds
    lacks_values         some change does not carry all values that the table needs
    needed_by_deletes    the columns whose values a delete has to carry
    retyped              the columns that the table holds in another type
    """

    columns: TableColumns
    truncate: Truncate | None
    ends_stored_rows: bool
    lacks_values: bool
    needed_by_deletes: tuple[str, ...]
    retyped: tuple[str, ...]

    @property
    def needs_each_key_alone(self) -> bool:
        """Return whether the rows follow from the last change of each key alone."""
        return not self.lacks_values and not self.ends_stored_rows


def plan_batch(state: TableState, policy: TablePolicy, survey: Survey, columns: TableColumns) -> BatchPlan:
    """Return the plan of a batch whose survey is known."""
    truncate = last_truncate(state.ledger, survey)
    needed = needed_by_deletes(policy, columns)
    return BatchPlan(
        columns=columns,
        truncate=truncate,
        ends_stored_rows=truncate is not None and truncate != state.ledger.truncate,
        lacks_values=lacks_values(survey, truncate, needed),
        needed_by_deletes=needed,
        retyped=() if state.columns is None else columns.retyped_since(state.columns),
    )


def needed_by_deletes(policy: TablePolicy, columns: TableColumns) -> tuple[str, ...]:
    """Return the columns whose values a delete has to carry.

    A soft delete keeps the row, and a partition's columns say where a row is. Each change has its key."""
    if policy.deletes == "soft":
        return columns.beside_key
    return tuple(each.column for each in policy.partitions if each.column not in columns.key)


def lacks_values(survey: Survey, truncate: Truncate | None, needed: tuple[str, ...]) -> bool:
    """Return whether some change does not carry all values that the table needs."""
    has_deletes = survey.deletes > 0 or truncate is not None
    return survey.has_unavailable or (has_deletes and bool(needed))


def is_work_of_one_task(events: int) -> bool:
    """Return whether sending this many events to other tasks takes longer than working through them."""
    return events <= EVENTS_OF_ONE_TASK


def not_applied(ranges: tuple[OffsetRange, ...], ledger: Ledger) -> tuple[OffsetRange, ...]:
    """Return the parts of the ranges that the ledger does not count as applied."""
    new = (replace(r, first=max(r.first, ledger.positions.get(r.partition, 0))) for r in ranges)
    return tuple(r for r in new if r.length > 0)


def without_halved_moves(
    ranges: tuple[OffsetRange, ...], halved: Mapping[int, int]
) -> tuple[OffsetRange, ...]:
    """End each range before its first half of a key change whose other half is not in the batch.

    A range with very many events after the half stays as it is. The other ranges grow with the next batch,
    and then hold the other half."""
    ends = {r.partition: halved.get(r.partition, r.until) for r in ranges}
    shorter = (
        r if r.until - ends[r.partition] > MOST_EVENTS_WITHIN_A_MOVE else replace(r, until=ends[r.partition])
        for r in ranges
    )
    return tuple(r for r in shorter if r.length > 0)


def ledger_after(
    before: Ledger,
    ranges: tuple[OffsetRange, ...],
    survey: Survey,
    topic_id: str | None,
    *,
    key: tuple[str, ...] = (),
    quarantined: int,
) -> Ledger:
    """Return the ledger of a commit that applies the ranges, without the truncate to remember."""
    applied, applied_ts_us = dict(before.applied), dict(before.applied_ts_us)
    for partition, found in survey.partitions.items():
        if found.snapshots:
            applied.pop(partition, None)
            applied_ts_us.pop(partition, None)
        if found.last is not None and found.last.ts_us is not None:
            applied[partition] = max(found.last.position, applied.get(partition, NOWHERE))
            applied_ts_us[partition] = max(found.last.ts_us, applied_ts_us.get(partition, 0))
    return replace(
        before,
        topic_id=topic_id or before.topic_id,
        positions={**before.positions, **{r.partition: r.until for r in ranges}},
        applied=applied,
        applied_ts_us=applied_ts_us,
        key_columns=key or before.key_columns,
        events=survey.changes,
        deletes=survey.deletes,
        quarantined=quarantined,
        source_times=survey.source_times,
    )


def committed_ledger(
    before: Ledger,
    ranges: tuple[OffsetRange, ...],
    survey: Survey,
    topic_id: str | None,
    plan: BatchPlan,
    quarantined: int,
) -> Ledger:
    """Return the ledger of the batch's commit."""
    after = ledger_after(before, ranges, survey, topic_id, key=plan.columns.key, quarantined=quarantined)
    return replace(after, truncate=remembered_truncate(before, survey, plan.truncate))
