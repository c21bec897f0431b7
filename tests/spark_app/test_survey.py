"""A survey finds the same about changes as a look at each change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.ledger.ledger import Ledger, SourceTimes, Truncate
from spark_app.merge.survey import (
    ChangeSurvey,
    LastStreamed,
    PartitionSurvey,
    Snapshot,
    Survey,
    survey_changes,
)
from tests.spark_app.changes import Change, frame_of, sent_changes

pytestmark = pytest.mark.usefixtures("each_way")

POSITIONS = st.tuples(st.integers(3, 9), st.integers(3, 9)).map(bytes)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent_changes(),
    st.dictionaries(st.integers(0, 1), POSITIONS),
    st.dictionaries(st.integers(0, 1), st.integers(0, 3)),
)
def test_a_survey_is_what_one_finds_change_by_change(
    spark: SparkSession, changes: list[Change], applied: dict[int, bytes], applied_s: dict[int, int]
) -> None:
    ledger = Ledger(
        "topic",
        applied=applied,
        applied_ts_us={partition: _microseconds(second) for partition, second in applied_s.items()},
    )
    found = survey_changes(frame_of(spark, changes), ledger)
    expected = _survey(changes, ledger)
    assert replace(found, source_times=None) == expected
    assert _times(found.source_times) == _range_of_times(changes)


def test_changes_that_are_computed_twice_count_once(spark: SparkSession) -> None:
    survey = ChangeSurvey.beside(Ledger("topic"))
    changes = survey.counted(frame_of(spark, [_update(offset) for offset in range(7)]))
    first, again = changes.collect(), changes.coalesce(1).collect()
    assert first == again
    assert survey.of_counted(changes).changes == 7


def test_half_of_the_changes_are_as_old_as_the_survey_says(spark: SparkSession) -> None:
    seconds = [second for second in range(200) for _ in range(3)]
    changes = [replace(_update(n), source_s=second, task=n % 2) for n, second in enumerate(seconds)]
    times = survey_changes(frame_of(spark, changes), Ledger("topic")).source_times
    assert times is not None
    assert (times.min, times.max) == (_microseconds(0), _microseconds(199))
    assert abs(times.p05 - _microseconds(10)) <= 10_000_000
    assert abs(times.p50 - _microseconds(100)) <= 10_000_000


def _update(offset: int) -> Change:
    return Change("u", "a", task=offset % 2, partition=0, commit=1, logged=1, source_s=0, offset=offset)


def _survey(changes: list[Change], ledger: Ledger) -> Survey:
    good = [c for c in changes if c.reason is None]
    return Survey(
        changes=len(changes),
        bad=len(changes) - len(good),
        of_unknown_schema=sum(c.reason == "unknown_schema" for c in changes),
        inserted=sum(c.op in ("c", "r") for c in good),
        deletes=sum(c.op == "d" for c in good),
        has_unavailable=any(c.lacks_note for c in changes),
        partitions={
            partition: _partition(partition, [c for c in changes if c.partition == partition], ledger)
            for partition in {c.partition for c in changes}
        },
    )


def _partition(partition: int, changes: list[Change], ledger: Ledger) -> PartitionSurvey:
    streamed = [c for c in changes if c.is_streamed]
    snapshots: dict[Snapshot, int] = {}
    for read in changes:
        if read.is_snapshot_read:
            snapshots.setdefault(Snapshot(read.source_us or 0, read.log_position), read.offset)
    last = [c for c in streamed if c.offset >= max(snapshots.values(), default=0)]
    applied, applied_us = ledger.applied.get(partition), ledger.applied_ts_us.get(partition)
    rewound = [
        c.offset
        for c in streamed
        if applied is not None and applied_us is not None and c.source_us is not None
        if c.position < applied and c.source_us > applied_us
    ]
    return PartitionSurvey(
        snapshots=snapshots,
        truncates=tuple(
            Truncate(partition, c.offset, c.position, c.log_position, c.source_us)
            for c in streamed
            if c.op == "t"
        ),
        first_rewound=min(rewound, default=None),
        first_log_position=min((c.log_position for c in changes if c.reason is None), default=None),
        first_position=min((c.position for c in streamed), default=None),
        last=LastStreamed(
            max(c.position for c in last),
            max((c.source_us for c in last if c.source_us is not None), default=None),
        )
        if last
        else None,
    )


def _times(found: SourceTimes | None) -> tuple[int, int] | None:
    return None if found is None else (found.min, found.max)


def _range_of_times(changes: list[Change]) -> tuple[int, int] | None:
    times = [c.source_us for c in changes if c.is_streamed and c.source_us is not None]
    return (min(times), max(times)) if times else None


def _microseconds(second: int) -> int:
    return replace(_update(0), source_s=second).source_us or 0
