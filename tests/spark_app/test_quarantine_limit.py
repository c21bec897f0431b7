"""A broken producer is noticed: a table stops at its limit, and loses none of the events before that."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.table.quarantine import read_quarantine
from spark_app.table.quarantine_limit import (
    FEWEST_EVENTS,
    LATEST_EVENTS,
    LatestEvents,
    QuarantineLimitReached,
)
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource, table_of_things
from tributary.contract.lake import TablePolicy

BATCHES = st.lists(st.integers(0, 12_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
LIMITS = st.integers(0, 100).map("{}%".format) | st.integers(0, 20_000).map(str)


@given(BATCHES, st.integers(1, 12_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), LIMITS)
def test_a_batch_has_room_where_it_and_the_latest_events_before_it_stay_within_the_limit(
    batches: list[tuple[int, int]], batch: tuple[int, int], limit: str
) -> None:
    latest = LatestEvents()
    for events, set_aside in batches:
        latest.add(events, set_aside)

    remembered: list[tuple[int, int]] = []
    for before in reversed(batches):
        if sum(events for events, _ in remembered) >= LATEST_EVENTS:
            break
        remembered.append(before)
    events, set_aside = (sum(counts) for counts in zip(batch, *remembered, strict=True))
    number = int(limit.removesuffix("%"))
    allowed = number * max(events, FEWEST_EVENTS) / 100 if limit.endswith("%") else number
    has_room = latest.has_room_for(*batch, TablePolicy(quarantine_limit=limit))
    assert has_room == (batch[1] == 0 or set_aside <= allowed)


def test_a_table_stops_before_a_batch_beyond_its_limit_and_continues_when_it_may(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = SourceTable()
    shop.begin()
    for key in range(4):
        shop.insert(key, "good", None)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    rows += [(TOPIC, 0, 4 + n, None, rows[0][4], bytearray(b"garbage"), None, None) for n in range(3)]
    rows.append((*event_row(shop.events[0], 7),))

    def table_with_limit(limit: str) -> TableIngest:
        policy = TablePolicy(buckets=1, quarantine_limit=limit)
        hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
        return TableIngest(
            "source.public.things",
            TOPIC,
            MemorySource(spark, rows),
            hudi,
            str(tmp_path / "quarantine"),
            TopicForm(PostgresLog()),
        )

    table = table_with_limit("2")
    table.apply((OffsetRange(0, 0, 5),))
    table.apply((OffsetRange(0, 5, 6),))

    with pytest.raises(QuarantineLimitReached, match=r"1 not_json \(the first at 0:6\).*3 cannot be read"):
        table.apply((OffsetRange(0, 6, 8),))

    table = table_with_limit("3")
    assert table.ledger.positions == {0: 6}
    assert _offsets_in_quarantine(spark, table) == {4, 5}
    table.apply((OffsetRange(0, 6, 8),))
    assert _offsets_in_quarantine(spark, table) == {4, 5, 6}
    assert table.ledger.positions == {0: 8}


def test_a_topic_without_a_readable_event_is_not_drained_into_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(TOPIC, 0, n, None, None, bytearray(b"garbage"), None, None) for n in range(101)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy())
    table = table_of_things(hudi, rows, tmp_path)

    table.apply((OffsetRange(0, 0, 100),))
    with pytest.raises(QuarantineLimitReached, match=r"expected at most 10% of the latest 10,000"):
        table.apply((OffsetRange(0, 100, 101),))


def _offsets_in_quarantine(spark: SparkSession, table: TableIngest) -> set[int]:
    found = read_quarantine(spark, table.quarantine_path, 0)
    assert found is not None
    return {row["offset"] for row in found[0].collect()}
