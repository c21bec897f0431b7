"""Records land in bronze with their places, and tables read them from there like events of Kafka."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.dynamodb import ItemLog
from spark_app.reports import ProgressWriter
from spark_app.run.loop import Ingest
from spark_app.run.maintenance import BronzeTables, maintain
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.pace import Pace
from spark_app.run.table_runs import TableRuns
from spark_app.sources.bronze import BronzeSource
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import EVENT, EventSource, OffsetRange
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.landing import Landed, Landing, chunks_of, ends_of
from spark_app.sources.kinesis.places import Shard, ShardPlace, StreamPlaces
from spark_app.sources.kinesis.recently_landed import LandedRecord, RecentlyLanded
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.sources.kinesis.stream import Record
from spark_app.sources.several import SeveralSources
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.items.record import table_of_record
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.iceberg_catalog import iceberg_catalog
from tests.spark_app.items.generated import Sent
from tests.spark_app.items.test_lander import HOUR_MS, FakeStream
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import TablePolicy

AT = 1_790_000_000_000_000
FIRST = "49" + "0" * 54


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Iterator[Landing]:
    catalog = iceberg_catalog(spark, tmp_path / "bronze")
    table = f"{catalog}.lake.shop_records"
    yield Landing(spark, table, "changes", table_of_record)
    spark.sql(f"DROP TABLE IF EXISTS {table}")


def _record(number: int, table: str) -> Record:
    sequence = str(int(FIRST) + number)
    return Record(sequence, AT // 1000 + number, "KEY", Sent("a", AT + number, {}, table=table).data)


def test_landed_records_are_events_and_their_places_survive(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_app.sources.kinesis.landing.SNAPSHOTS_KEPT", 1)
    assert landing.read_places() == StreamPlaces()
    places = StreamPlaces("2026").with_shards((Shard("s0"), Shard("s1")))
    first = [
        Landed(ShardPlace(0, "s0", "2", until_ms=5), (_record(1, "orders"), _record(2, "notes"))),
        Landed(ShardPlace(1, "s1", "3", until_ms=6), (_record(3, "orders"),)),
    ]
    places = landing.land(places, first)
    places = landing.land(places, [Landed(ShardPlace(0, "s0", "4", is_over=True), (_record(4, "orders"),))])
    places = landing.land(replace(places, created="later"), [])

    assert landing.read_places() == places
    landing.expire_snapshots()
    assert landing.spark.table(f"{landing.table}.snapshots").count() == 1
    assert landing.read_places() == places
    assert places.offsets == {"orders": {0: 2, 1: 1}, "notes": {0: 1}}
    bronze = BronzeSource(landing.spark, landing.table)
    assert bronze.topics() == {"orders", "notes"}
    extent = bronze.extents(frozenset({"orders"}))["orders"]
    assert extent.end == {0: 2, 1: 1}
    read = bronze.read("orders", (OffsetRange(0, 1, 2), OffsetRange(1, 0, 1))).collect()
    found = {(row["partition"], row["offset"]): (bytes(row["key"]), bytes(row["value"])) for row in read}
    ranges = (OffsetRange(0, 1, 2), OffsetRange(1, 0, 1))
    recent = landing.recent.read(landing.spark, "orders", ranges)
    assert recent is not None
    assert recent.schema == EVENT
    assert sorted(recent.collect()) == sorted(bronze.read("orders", ranges).collect())
    assert found == {
        (0, 1): (_record(4, "").sequence.encode(), _record(4, "orders").data),
        (1, 0): (_record(3, "").sequence.encode(), _record(3, "orders").data),
    }
    rows = landing.spark.table(landing.table).select("stream", "shard", "sequence_number", "partition_key")
    assert ("changes", "s0", _record(2, "").sequence, "KEY") in {tuple(row) for row in rows.collect()}


def test_a_commit_that_somebody_has_undone_does_not_count(landing: Landing) -> None:
    places = StreamPlaces("2026").with_shards((Shard("s0"),))
    before = landing.land(places, [Landed(ShardPlace(0, "s0", "1"), (_record(1, "orders"),))])
    kept = landing.spark.table(f"{landing.table}.snapshots").select("snapshot_id").collect()[0][0]
    after = landing.land(before, [Landed(ShardPlace(0, "s0", "2"), (_record(2, "orders"),))])
    assert landing.read_places() == after

    BronzeUpkeep(landing.spark, landing.table)._iceberg.manageSnapshots().rollbackTo(kept).commit()
    assert landing.read_places() == before


@pytest.mark.parametrize("most_bytes", [1, 700, 1 << 20])
def test_records_get_offsets_one_after_the_other_however_they_are_cut(
    most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_app.sources.kinesis.landing.BYTES_OF_ONE_CHUNK", most_bytes)
    places = StreamPlaces(offsets={"orders": {0: 10}})
    tables = ["orders", "notes", "orders", "orders", "notes"]
    records = tuple(_record(number, table) for number, table in enumerate(tables))
    landed = [Landed(ShardPlace(0, "s0"), records), Landed(ShardPlace(1, "s1"), records[:1])]
    chunks = chunks_of(places, landed, table_of_record)

    found = {
        (chunk.topic, chunk.partition, offset): record
        for chunk in chunks
        for offset, record in enumerate(chunk.records, chunk.first)
    }
    orders, notes = [records[n] for n in (0, 2, 3)], [records[n] for n in (1, 4)]
    assert found == {
        **{("orders", 0, offset): record for offset, record in enumerate(orders, 10)},
        **{("notes", 0, offset): record for offset, record in enumerate(notes)},
        ("orders", 1, 0): records[0],
    }
    assert ends_of(chunks) == {"orders": {0: 13, 1: 1}, "notes": {0: 2}}
    assert all(sum(len(r.data) for r in c.records) <= most_bytes or len(c.records) == 1 for c in chunks)


def test_a_range_with_a_record_that_is_not_held_any_more_is_read_from_bronze() -> None:
    recent = RecentlyLanded(most_bytes=25)
    records = [LandedRecord(("orders", 0, offset), 7, b"key", bytes(10)) for offset in range(3)]
    recent.add(records[:2])
    assert recent.find("orders", [OffsetRange(0, 0, 2)]) == records[:2]

    recent.add(records[2:])
    assert recent.find("orders", [OffsetRange(0, 0, 2)]) is None
    assert recent.find("orders", [OffsetRange(0, 1, 3)]) == records[1:]
    assert recent.find("notes", [OffsetRange(0, 1, 3)]) is None
    assert recent.find("orders", [OffsetRange(0, 1, 4)]) is None


def test_without_its_snapshots_the_records_themselves_say_how_far_the_stream_was_read(
    landing: Landing,
) -> None:
    places = StreamPlaces("2026").with_shards((Shard("s0"), Shard("s1")))
    read = (_record(1, "orders"), _record(2, "notes"))
    landing.land(places, [Landed(ShardPlace(0, "s0", read[-1].sequence), read)])
    other = Landing(landing.spark, f"{landing.table}_copy", "changes", table_of_record)
    landing.spark.table(landing.table).writeTo(other.table).using("iceberg").create()

    found = other.read_places()
    assert [(place.partition, place.shard, place.sequence) for place in found.shards] == [
        (0, "s0", read[-1].sequence)
    ]
    assert found.offsets == {"orders": {0: 1}, "notes": {0: 1}}
    assert found.next_partition == 1
    landing.spark.sql(f"DROP TABLE {other.table}")


def test_an_ingest_and_a_rebuild_apply_what_has_landed_and_a_loss_blocks_the_tables(
    landing: Landing, tmp_path: Path
) -> None:
    spark, stream = landing.spark, FakeStream()
    for number in range(5):
        stream.put("s0", Sent(str(number % 3), AT + number, {"n": str(number)}, table="orders").data)
    stream.open("left", "s0")
    stream.put("left", Sent("0", AT + 9, None, table="orders").data)

    def table_of(source: EventSource) -> TableIngest:
        return TableIngest(
            name="shop.dynamodb.orders",
            topic="orders",
            source=source,
            hudi=HudiTable(spark, str(tmp_path / "silver"), "orders", TablePolicy(buckets=1)),
            quarantine_path=str(tmp_path / "quarantine"),
            form=TopicForm(ItemLog(), items=ItemRules()),
            deleted_path=str(tmp_path / "deleted"),
        )

    def run() -> tuple[bool, TableIngest]:
        lander = Lander("changes", stream, landing, now=lambda: stream.now_ms)
        bronze = BronzeSource(spark, landing.table)
        kinesis = KinesisSource(lander, bronze, landing.recent, follows=False)
        source = SeveralSources({"shop": kinesis}, lambda _: "shop")
        table = table_of(source)
        tables = TableRuns(source, lambda _: table, ProgressWriter(), OutcomeFiles(spark), follow=False)
        ingest = Ingest(spark, tables, pace=Pace(poll_seconds=0.01, idle_poll_seconds=0.01))
        try:
            return ingest.run(), table
        finally:
            source.close()

    is_well, table = run()
    assert is_well
    rows = {row["id"]: row["n"] for row in table.hudi.read().collect()}
    assert rows == {"1": "4", "2": "2"}
    rebuilt = rebuild_table(table_of(BronzeSource(spark, landing.table)), patience_seconds=0)
    assert rebuilt.positions == table.ledger.positions
    assert {row["id"]: row["n"] for row in table.hudi.read().collect()} == rows

    stream.put("left", Sent("5", AT + 10, {"n": "lost"}, table="orders").data)
    stream.shards_by_id["left"].trimmed = 2
    stream.now_ms += 25 * HOUR_MS
    is_well, table = run()
    assert not is_well
    outcome = OutcomeFiles(spark).read(table.quarantine_path)
    assert outcome is not None
    assert outcome.state == "blocked"
    assert "has deleted records" in outcome.what


def test_maintenance_merges_the_records_removes_old_ones_and_keeps_the_places(
    landing: Landing, tmp_path: Path
) -> None:
    spark = landing.spark
    table = TableIngest(
        name="shop.dynamodb.orders",
        topic="orders",
        source=BronzeSource(spark, landing.table),
        hudi=HudiTable(spark, str(tmp_path / "silver"), "orders", TablePolicy(buckets=1)),
        quarantine_path=str(tmp_path / "quarantine"),
        form=TopicForm(ItemLog(), items=ItemRules()),
        deleted_path=str(tmp_path / "deleted"),
    )
    places = StreamPlaces("2026").with_shards((Shard("s0"),))
    for number in range(8):
        places = landing.land(
            places, [Landed(ShardPlace(0, "s0", str(number)), (_record(number, "orders"),))]
        )
    extent = table.source.extents(frozenset({"orders"}))["orders"]
    table.recover()
    table.apply(table.pending(extent, 100))
    places = landing.land(places, [Landed(ShardPlace(0, "s0", "9"), (_record(9, "orders"),))])
    upkeep = BronzeUpkeep(spark, landing.table)
    bronze = BronzeTables(table.source, [upkeep], lambda _: upkeep)
    out = io.StringIO()

    def run(retention: timedelta | None) -> list[dict[str, Any]]:
        out.seek(out.truncate(0))
        assert maintain(bronze, lambda _: table, retention, ProgressWriter(out), OutcomeFiles(spark))
        return [json.loads(line) for line in out.getvalue().splitlines()]

    (served,) = run(None)
    assert (served["table"], served["merged_files"]) == ("shop_records", 9)
    assert spark.table(landing.table).count() == 9
    assert landing.read_places() == places

    trimmed = next(found for found in run(timedelta(seconds=1)) if found["event"] == "trimmed")
    assert trimmed["kept_from"] == {"0": 8}
    assert landing.read_places() == places
    assert [row["k_offset"] for row in spark.table(landing.table).collect()] == [8]
    table.apply(table.pending(table.source.extents(frozenset({"orders"}))["orders"], 100))
    assert table.ledger.positions == {0: 9}
