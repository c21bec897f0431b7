"""The survey: facts about a batch's changes, from the one pass that computes them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

from pyspark.sql import DataFrame

from spark_app.ledger.ledger import Ledger, SourceTimes, Truncate
from spark_app.steps.found_changes import Applied, ChangeCounter, Found
from spark_app.steps.steps import steps


@dataclass(frozen=True, order=True)
class Snapshot:
    """A snapshot of the table.

    All its reads have both values (io.debezium.relational.RelationalSnapshotChangeEventSource).

    source_us     when its transaction began, in microseconds since 1970
    log_position  the place that the log had reached then
    """

    source_us: int
    log_position: bytes


@dataclass(frozen=True)
class LastStreamed:
    """The highest position and the latest time of streamed changes.

    ts_us  in microseconds since 1970; None if no change has a time
    """

    position: bytes
    ts_us: int | None


@dataclass(frozen=True)
class PartitionSurvey:
    """The survey of one partition. Offsets are ascending.

    snapshots           each snapshot and the offset of its first read
    truncates           in the order of their offsets
    first_rewound       the offset of the first change whose position is lower than the ledger's, although the
                        source committed it later than all applied changes
    first_log_position  the lowest place in the log of any change
    first_position      the lowest position of a streamed change
    last                of the changes that streamed since the last snapshot began
    """

    snapshots: Mapping[Snapshot, int] = field(default_factory=dict)
    truncates: tuple[Truncate, ...] = ()
    first_rewound: int | None = None
    first_log_position: bytes | None = None
    first_position: bytes | None = None
    last: LastStreamed | None = None


@dataclass(frozen=True)
class Survey:
    """What a batch holds.

    inserted         creates and reads
    has_unavailable  whether some update does not know all its values: it left some unchanged
    has_moved        whether some change is half of a changed primary key
    """

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
        """The snapshots in all partitions, in the order in which the source took them."""
        return tuple(sorted({snapshot for found in self.partitions.values() for snapshot in found.snapshots}))

    def reaches_before(self, truncate: Truncate) -> bool:
        """Return whether some change is older than the truncate."""
        return any(
            found.first_log_position is not None and found.first_log_position <= truncate.log_position
            for found in self.partitions.values()
        )

    def repeats(self, ledger: Ledger) -> bool:
        """Return whether some change comes before what the ledger says was applied."""
        return any(
            found.first_position is not None and found.first_position < ledger.applied[partition]
            for partition, found in self.partitions.items()
            if partition in ledger.applied
        )


@dataclass(frozen=True)
class ChangeSurvey:
    """Surveys changes while some query computes them."""

    counter: ChangeCounter

    @staticmethod
    def beside(ledger: Ledger) -> ChangeSurvey:
        """Begin a survey that compares the changes with what the ledger says was applied."""
        applied = {
            partition: Applied(position, ledger.applied_ts_us[partition])
            for partition, position in ledger.applied.items()
            if partition in ledger.applied_ts_us
        }
        return ChangeSurvey(steps().change_counter(applied))

    def counted(self, changes: DataFrame) -> DataFrame:
        """Return the same changes (`decode.change_type`), which may be surveyed when they are computed."""
        return self.counter.counted(changes)

    def of_counted(self, held: DataFrame) -> Survey:
        """Return the survey of the changes that `counted` returned, which are computed and held."""
        return _survey(self.counter.found(held))


def survey_changes(changes: DataFrame, ledger: Ledger) -> Survey:
    """Return the survey of changes (`decode.change_type`). One Spark job."""
    return _survey(ChangeSurvey.beside(ledger).counter.found_in(changes))


def _survey(found: Sequence[Found]) -> Survey:
    by_partition: dict[int, list[Found]] = {}
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


def _partition_survey(partition: int, tasks: list[Found]) -> PartitionSurvey:
    snapshots: dict[Snapshot, int] = {}
    for found in (each for task in tasks for each in task.snapshots):
        snapshot = Snapshot(found.source_us, found.log_position)
        snapshots[snapshot] = min(found.offset, snapshots.get(snapshot, found.offset))
    truncates = [
        Truncate(partition, each.offset, each.position, each.log_position, each.source_us)
        for task in tasks
        for each in task.truncates
    ]
    return PartitionSurvey(
        snapshots=snapshots,
        truncates=tuple(sorted(truncates, key=lambda truncate: truncate.offset)),
        first_rewound=_lowest(task.first_rewound for task in tasks),
        first_log_position=_lowest(task.first_log_position for task in tasks),
        first_position=_lowest(task.first_position for task in tasks),
        last=_last_streamed(tasks, since=max(snapshots.values(), default=0)),
    )


_Value = TypeVar("_Value")


def _last_streamed(tasks: list[Found], since: int) -> LastStreamed | None:
    """Return what streamed last, at offsets from `since` on: the beginning of the last snapshot.

    That snapshot can be of another database, in which positions start from the beginning."""

    def values(by_offset: Iterable[Mapping[int, _Value]]) -> Iterator[_Value]:
        return (value for of_task in by_offset for offset, value in of_task.items() if offset >= since)

    highest = max(values(task.highest_positions for task in tasks), default=None)
    if highest is None:
        return None
    return LastStreamed(highest, max(values(task.latest_times for task in tasks), default=None))


def _source_times(timed: list[tuple[tuple[int, ...], int]]) -> SourceTimes | None:
    """Return the times of all changes, from each task's quantiles and number of times."""
    if not timed:
        return None
    times = sorted(
        (time_us, changes / len(quantiles)) for quantiles, changes in timed for time_us in quantiles
    )
    until = list(accumulate(changes for _, changes in times))

    def quantile(share: float) -> int:
        return times[bisect_left(until, share * until[-1])][0]

    return SourceTimes(min=times[0][0], p05=quantile(0.05), p50=quantile(0.5), max=times[-1][0])


_Ordered = TypeVar("_Ordered", int, bytes)


def _lowest(values: Iterable[_Ordered | None]) -> _Ordered | None:
    return min((value for value in values if value is not None), default=None)
