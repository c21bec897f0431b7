"""The lake table equals the SQL Server table after any history, however the events arrive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.positions.sqlserver import ChangeTables
from spark_app.sources.event import OffsetRange
from spark_app.table import batch_plan
from tests.parameters import first_then_long
from tests.soak import SOAKS
from tests.spark_app.debezium import SentEvent
from tests.spark_app.history import Delivery, deliveries
from tests.spark_app.sqlserver_history import SqlServerTable, sqlserver_histories
from tests.spark_app.test_histories import EXAMPLES, POLICIES, _Run
from tributary.contract.lake import TablePolicy

SHARES = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))


@pytest.mark.parametrize("policy", first_then_long(POLICIES[::3]), ids=lambda p: f"{p.storage}-{p.deletes}")
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=tuple(Phase) if SOAKS else (Phase.explicit, Phase.reuse, Phase.generate),
)
@given(data=st.data())
def test_the_lake_table_is_the_source_table_as_far_as_it_was_sent(
    spark: SparkSession, policy: TablePolicy, data: st.DataObject
) -> None:
    events = data.draw(sqlserver_histories())
    delivery = data.draw(deliveries(events))
    steps = data.draw(st.lists(SHARES, max_size=3))
    are_large = data.draw(st.booleans())
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        if are_large:
            patched.setattr(batch_plan, "EVENTS_OF_ONE_TASK", 0)
        run = _Run(spark, policy, events, delivery, Path(folder), log=ChangeTables())
        for shares in steps:
            run.apply(run._ranges(shares))
            if is_settled(run, events):
                run.check()
        run.apply_rest()
        run.check()
        assert run.is_at_end


def is_settled(run: _Run, events: Sequence[SentEvent]) -> bool:
    """Return whether the app has read all or none of the events that Debezium has sent again.

    Changes of one transaction share a position. So after a crash of Debezium's worker, the
    changes of the last transaction are applied again. A row can go back until the last of them has come."""
    for partition, until in run.table.ledger.positions.items():
        last: dict[int | None, int] = {}
        for number in run.delivery.logs[partition][:until]:
            key = events[number].of_key
            if number < last.get(key, -1):
                return False
            last[key] = number
    return True


def shifted() -> list[SentEvent]:
    source = SqlServerTable()
    source.begin()
    source.insert(1, "one", "a large body")
    source.insert(2, "two", "another")
    source.commit()
    source.begin()
    source.change_keys({1: 2, 2: 3})
    source.update(3, "TWO", None, body_is_unchanged=True)
    source.commit()
    return source.events


@pytest.mark.parametrize("cut", first_then_long(range(2, 9), 3))
def test_rows_that_take_each_others_keys_are_right_wherever_a_batch_ends(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    sent = shifted()
    run = _Run(
        spark,
        TablePolicy(buckets=1),
        sent,
        Delivery((tuple(range(len(sent))),)),
        tmp_path,
        log=ChangeTables(),
    )
    run.apply((OffsetRange(0, 0, cut),))
    run.check()
    run.apply_rest()
    run.check()
    assert run.is_at_end


@pytest.mark.parametrize("are_large", first_then_long([True, False]))
def test_a_batch_may_end_within_a_transaction_that_is_sent_again_after_later_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_large: bool
) -> None:
    source = SqlServerTable()
    source.begin()
    source.insert(1, "one", "a large body")
    source.insert(4, "four", "another")
    source.commit()
    source.begin()
    source.change_keys({1: 4, 4: 1})
    source.update(4, "FOUR", None, body_is_unchanged=True)
    source.commit()
    source.begin()
    source.insert(5, "five", "of a later transaction")
    source.commit()
    sent = source.events
    whole = tuple(range(len(sent)))
    if are_large:
        monkeypatch.setattr(batch_plan, "EVENTS_OF_ONE_TASK", 0)
    # Within the keys that change, after the deleted rows, and before the last change.
    for cut in (4, 6, 8):
        delivery = Delivery(((*whole, *whole),))
        run = _Run(spark, TablePolicy(buckets=1), sent, delivery, tmp_path / str(cut), log=ChangeTables())
        run.apply((OffsetRange(0, 0, 1),))
        run.apply((OffsetRange(0, 1, len(sent) + cut),))
        run.check()
        run.apply_rest()
        run.check()
        assert run.is_at_end


def test_a_transaction_that_is_sent_again_in_part_changes_nothing_in_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    sent = shifted()
    whole = tuple(range(len(sent)))
    run = _Run(
        spark, TablePolicy(buckets=1), sent, Delivery(((*whole, *whole[4:]),)), tmp_path, log=ChangeTables()
    )
    for until in (len(sent), len(sent) + 2):
        run.apply((OffsetRange(0, 0, until),))
    run.apply_rest()
    run.check()
    assert run.is_at_end
