"""Whatever happens to a table and however its events arrive, the lake table is the source table."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contract.lake import TablePolicy
from spark_app.event import OffsetRange
from spark_app.hudi import HudiTable
from spark_app.table_ingest import TableIngest
from tests.spark_app.debezium import TOPIC, Row, SentEvent, State, event_row
from tests.spark_app.history import Delivery, deliveries, histories
from tests.spark_app.memory_source import MemorySource

POLICIES = [
    TablePolicy(storage=storage, deletes=deletes, buckets=1)
    for storage in ("merge_on_read", "copy_on_write")
    for deletes in ("hard", "soft")
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{p.storage}-{p.deletes}")
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(data=st.data())
def test_after_every_batch_the_lake_table_is_the_source_table_as_far_as_it_was_sent(
    spark: SparkSession, policy: TablePolicy, data: st.DataObject
) -> None:
    events = data.draw(histories().filter(bool))
    delivery = data.draw(deliveries(events))
    event(f"repeated events: {len(delivery.numbers) > len(events)}")
    with TemporaryDirectory() as folder:
        source = MemorySource(
            spark, [event_row(events[number], offset) for offset, number in enumerate(delivery.numbers)]
        )
        for first, until in delivery.batches:
            is_restarted = data.draw(st.booleans())
            if first == 0 or is_restarted:
                table = _table(spark, policy, source, Path(folder))
            table.apply((OffsetRange(0, table.ledger.positions.get(0, 0), until),))
            reached = table.ledger.positions.get(0, 0)
            _assert_is(table, policy, _expected(events, delivery, reached))
        assert reached == len(delivery.numbers)


def test_a_batch_that_is_applied_twice_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table_events = _small_history()
    source = MemorySource(spark, [event_row(sent, offset) for offset, sent in enumerate(table_events)])
    table = _table(spark, POLICIES[0], source, tmp_path)
    table.apply((OffsetRange(0, 0, len(table_events)),))
    once = _rows(table)

    _table(spark, POLICIES[0], source, tmp_path).apply((OffsetRange(0, 0, len(table_events)),))

    assert _rows(table) == once


def _small_history() -> list[SentEvent]:
    from tests.spark_app.debezium import SourceTable

    source = SourceTable()
    source.begin()
    source.insert(1, "one", "body")
    source.insert(2, "two", None)
    source.commit()
    source.begin()
    source.delete(2)
    source.commit()
    return source.events


def _table(spark: SparkSession, policy: TablePolicy, source: MemorySource, folder: Path) -> TableIngest:
    return TableIngest(
        name="source.public.things",
        topic=TOPIC,
        source=source,
        hudi=HudiTable(spark, str(folder / "silver"), "things", policy),
        quarantine_path=str(folder / "quarantine"),
    )


def _expected(events: list[SentEvent], delivery: Delivery, until: int) -> SentEvent | None:
    return events[max(delivery.numbers[:until])] if until else None


def _assert_is(table: TableIngest, policy: TablePolicy, expected: SentEvent | None) -> None:
    present, deleted = _rows(table)
    assert not Path(table.quarantine_path).exists()
    assert present == _filled(expected.state if expected else {}, present)
    if policy.deletes == "soft":
        assert deleted == _filled(expected.deleted if expected else {}, deleted)


def _rows(table: TableIngest) -> tuple[State, State]:
    if not table.hudi.exists():
        return {}, {}
    frame = table.hudi.read()
    rows = [row.asDict() for row in frame.collect()]
    assert len({row["_key"] for row in rows}) == len(rows)
    present = {row["id"]: _own(row) for row in rows if not row.get("_deleted")}
    deleted = {row["id"]: _own(row) for row in rows if row.get("_deleted")}
    return present, deleted


def _own(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _filled(expected: State, found: State) -> State:
    """A column that no event has named yet is not in the lake; one that is there is null in older rows."""
    names = next(iter(found.values()), {}).keys()
    return {
        key: {name: row.get(name) for name in names} | {n: v for n, v in row.items() if v is not None}
        for key, row in expected.items()
    }
