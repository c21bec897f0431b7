"""A fold of the whole batch needs none of the changes that a task leaves out."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark_app.jvm.partial_fold import partial_fold
from spark_app.ledger.ledger import Ledger, Truncate
from spark_app.merge.fold import fold_and_carry_forward
from spark_app.merge.order import without_applied
from spark_app.merge.survey import Survey, survey_changes
from spark_app.wire.decode import DELETE
from tests.spark_app.changes import COLUMNS, Change, frame_of, sent_changes

LOGGED = st.integers(3, 9)
POSITIONS = st.tuples(LOGGED, LOGGED).map(bytes)
TRUNCATES = st.builds(
    lambda partition, offset, position, source_us: Truncate(
        partition, offset, position, log_position=position[1:], source_us=source_us
    ),
    st.integers(0, 1),
    st.integers(0, 60),
    POSITIONS,
    st.integers(0, 4_000_000),
)
NEVER_US = 2**62


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent_changes(least=30, most=60), st.dictionaries(st.integers(0, 1), POSITIONS), st.none() | TRUNCATES)
def test_a_fold_of_what_each_task_has_folded_is_the_fold_of_all(
    spark: SparkSession, changes: list[Change], applied: dict[int, bytes], truncate: Truncate | None
) -> None:
    ledger = Ledger("topic", applied=applied, applied_ts_us=dict.fromkeys(applied, NEVER_US))
    frame = frame_of(spark, changes)
    survey = survey_changes(frame, ledger)
    partial = partial_fold(frame)
    assert _folded(partial, ledger, survey, truncate) == _folded(frame, ledger, survey, truncate)
    left_out = len(changes) - partial.count()
    event(f"of {len(changes) // 10 * 10} changes left out: {left_out}")


def test_only_the_last_complete_change_of_a_key_leaves_its_task(spark: SparkSession) -> None:
    changes = [_change("c", "a", 1), _change("u", "a", 2), _change("u", "b", 3), _change("u", "a", 4)]
    assert _offsets(partial_fold(frame_of(spark, changes))) == [3, 4]


def test_a_task_never_leaves_out_the_last_change_of_its_key_in_the_source(spark: SparkSession) -> None:
    went_back = [_change("u", "a", 1, logged=9), _change("u", "a", 2, logged=8)]
    in_a_snapshot = [_change("u", "b", 3), _change("r", "b", 4)]
    unchanged_value = [_change("u", "c", 5), _change("u", "c", 6, lacks_note=True)]
    deleted = [_change("u", "d", 7), _change("d", "d", 8)]
    bad = [_change("u", "e", 9), _change("u", "e", 10, reason="mismatch")]
    changes = [*went_back, *in_a_snapshot, *unchanged_value, *deleted, *bad]
    assert _offsets(partial_fold(frame_of(spark, changes))) == list(range(1, 11))


def test_a_task_hands_on_each_of_many_changes_that_are_not_to_be_folded(spark: SparkSession) -> None:
    good = [_change("u", "a", offset) for offset in range(0, 200, 2)]
    bad = [_change("u", "a", offset, reason="mismatch") for offset in range(1, 200, 2)]
    changes = sorted([*good, *bad], key=lambda change: change.offset)
    assert _offsets(partial_fold(frame_of(spark, changes))) == [*range(1, 198, 2), 198, 199]


def test_a_read_without_a_mark_comes_before_what_streams_later(spark: SparkSession) -> None:
    changes = [_change("r", "a", 1, logged=8, commit=7), _change("u", "a", 2, logged=10, commit=6)]
    frame, ledger = frame_of(spark, changes), Ledger("topic")
    survey = survey_changes(frame, ledger)
    for folded in (frame, partial_fold(frame)):
        assert [row["offset"] for row in _folded(folded, ledger, survey, truncate=None)] == [2]


def test_a_task_holds_no_more_than_some_changes_at_a_time(spark: SparkSession) -> None:
    between = [_change("u", str(offset), offset) for offset in range(2, 100)]
    changes = frame_of(spark, [_change("u", "a", 1), *between, _change("u", "a", 100)])
    large = changes.withColumn("filler", F.repeat(F.lit("x"), 2 << 20))
    assert _offsets(partial_fold(large)) == list(range(1, 101))
    assert _offsets(partial_fold(changes)) == list(range(2, 101))


def _change(op: str, key: str, offset: int, logged: int = 5, **more: object) -> Change:
    values: Mapping[str, object] = {"task": 0, "partition": 0, "commit": 5, "source_s": 1, **more}
    return Change(op, key, logged=logged, offset=offset, number=offset, **values)  # type: ignore[arg-type]


def _offsets(changes: DataFrame) -> list[int]:
    return sorted(row["offset"] for row in changes.select("offset").collect())


def _folded(changes: DataFrame, ledger: Ledger, survey: Survey, truncate: Truncate | None) -> list[Row]:
    good = without_applied(changes.where(F.col("reason").isNull()), ledger, survey)
    rows = fold_and_carry_forward(good, COLUMNS, survey, truncate, epoch=0)
    # A hard delete needs only the key.
    row = F.when(F.col("op") != DELETE, F.col("row")).alias("row")
    missing = F.when(F.col("op") != DELETE, F.col("missing")).alias("missing")
    return sorted(
        rows.select("key", "op", "offset", "partition", "log_position", "seq", row, missing).collect()
    )
