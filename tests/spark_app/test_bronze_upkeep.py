"""Bronze forgets events, old snapshots and small files, and the sink can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_app.sources.bronze_upkeep import POSITIONS, BronzeUpkeep, key_condition
from spark_app.sources.event import OffsetRange, TopicExtent
from tests.spark_app.test_bronze import COLUMNS, Bronze, bronze

__all__ = ["bronze"]

TOPIC, OTHER = "shop.public.orders", "shop.public.it's"
OFFSETS = {f"{POSITIONS[0]}control.group": '{"0":7}'}


def _land(bronze: Bronze, topic: str, offsets: range, offsets_of_sink: str | None = None) -> None:
    """Land one commit of events as the sink does. Their keys come with and without a schema."""
    rows = []
    for offset in offsets:
        payload = {"id": offset % 3, "name": "it's"}
        key = payload if offset % 2 else {"schema": {"type": "struct"}, "payload": payload}
        value = bytearray(f"secret {offset % 3}", "ascii")
        rows.append((topic, 0, offset, 1000 * offset, bytearray(json.dumps(key), "ascii"), value, None, None))
    writer = bronze.spark.createDataFrame(rows, COLUMNS).coalesce(1).writeTo(bronze.table)
    if offsets_of_sink is not None:
        writer = writer.option(f"snapshot-property.{POSITIONS[0]}control.group", offsets_of_sink)
    writer.append()


def _summaries(bronze: Bronze) -> list[dict[str, str]]:
    found = bronze.spark.sql(f"SELECT summary FROM {bronze.table}.snapshots ORDER BY committed_at").collect()
    return [dict(row["summary"]) for row in found]


def _on_disk(folder: Path) -> str:
    """Return the rows of all data files, also of those that no snapshot has."""
    return " ".join(str(pq.ParquetFile(path).read().to_pylist()) for path in folder.rglob("*.parquet"))


@pytest.fixture
def upkeep(bronze: Bronze) -> BronzeUpkeep:
    bronze.create()
    for start in range(0, 60, 10):
        _land(bronze, TOPIC, range(start, start + 10), f'{{"0":{start}}}')
    _land(bronze, OTHER, range(6), '{"0":7}')
    return BronzeUpkeep(bronze.spark, bronze.table)


def test_blanked_events_are_in_no_file_and_no_offset_is_lost(
    bronze: Bronze, upkeep: BronzeUpkeep, tmp_path: Path
) -> None:
    upkeep.blank(TOPIC, key_condition([{"id": "1", "name": "it's"}, {"id": "it's", "name": "1"}]))
    upkeep.expire_all_snapshots_but_one()

    assert bronze.source.extents(frozenset({TOPIC}))[TOPIC] == TopicExtent({0: 0}, {0: 60})
    rows = upkeep.events(TOPIC).collect()
    assert len(rows) == 60
    for row in rows:
        is_blank = row["k_offset"] % 3 == 1
        assert (row["value"] is None and row["key"] is None) == is_blank
    assert len(_summaries(bronze)) == 1
    remains = _on_disk(tmp_path)
    assert "secret 0" in remains
    assert remains.count("secret 1") == 2  # Only in the other topic.
    assert bronze.source.read(TOPIC, (OffsetRange(0, 0, 60),)).count() == 60


def test_the_sink_still_finds_its_offsets(bronze: Bronze, upkeep: BronzeUpkeep) -> None:
    upkeep.merge_small_files()
    upkeep.expire_snapshots()
    kept = _summaries(bronze)
    assert [found.get(next(iter(OFFSETS))) for found in kept] == ['{"0":7}', None]

    upkeep.blank(TOPIC, "k_offset = 5")
    upkeep.expire_all_snapshots_but_one()
    (last,) = _summaries(bronze)
    assert {name: last[name] for name in OFFSETS} == OFFSETS
    _land(bronze, TOPIC, range(60, 62), '{"0":9}')
    assert bronze.source.extents(frozenset({TOPIC}))[TOPIC].end == {0: 62}


def test_old_snapshots_from_the_sink_s_last_one_on_stay(bronze: Bronze, upkeep: BronzeUpkeep) -> None:
    upkeep.blank(TOPIC, "k_offset = 5")
    bronze.spark.sql(
        f"ALTER TABLE {bronze.table} SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')"
    )
    assert upkeep.expire_snapshots() > 0
    assert [found.get(next(iter(OFFSETS))) for found in _summaries(bronze)] == ['{"0":7}', None]


def test_the_sink_finds_its_newest_offsets_if_it_committed_just_before_they_were_repeated(
    bronze: Bronze, upkeep: BronzeUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat = BronzeUpkeep._repeat

    def after_a_commit(self: BronzeUpkeep, position: Mapping[str, str]) -> None:
        _land(bronze, TOPIC, range(60, 65), '{"0":8}')
        repeat(self, position)

    monkeypatch.setattr(BronzeUpkeep, "_repeat", after_a_commit)
    upkeep.expire_all_snapshots_but_one()
    (last,) = _summaries(bronze)
    assert last[next(iter(OFFSETS))] == '{"0":8}'


def test_an_append_between_does_not_stop_a_change(
    bronze: Bronze, upkeep: BronzeUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SparkSession.sql

    def appending(session: SparkSession, statement: str) -> object:
        if statement.startswith("UPDATE"):
            monkeypatch.setattr(SparkSession, "sql", run)
            _land(bronze, TOPIC, range(60, 65), '{"0":8}')
        return run(session, statement)

    monkeypatch.setattr(SparkSession, "sql", appending)
    upkeep.blank(TOPIC, "k_offset >= 50")
    found = {row["k_offset"]: row["value"] for row in upkeep.events(TOPIC).collect()}
    assert sorted(found) == list(range(65))
    assert all(found[offset] is None for offset in range(50, 60))


def test_events_before_an_offset_go_and_the_others_stay(
    bronze: Bronze, upkeep: BronzeUpkeep, tmp_path: Path
) -> None:
    upkeep.remove_before(TOPIC, {0: 25, 3: 10})
    extents = bronze.source.extents(frozenset({TOPIC, OTHER}))
    assert extents == {TOPIC: TopicExtent({0: 25}, {0: 60}), OTHER: TopicExtent({0: 0}, {0: 6})}
    assert upkeep.expire_snapshots() > 0
    upkeep.expire_all_snapshots_but_one()
    assert "24000" not in _on_disk(tmp_path)


def test_small_files_become_one_and_the_former_ones_go(
    bronze: Bronze, upkeep: BronzeUpkeep, tmp_path: Path
) -> None:
    files = len(list(tmp_path.rglob("*.parquet")))
    assert upkeep.merge_small_files() == 6
    upkeep.expire_snapshots()
    assert upkeep.merge_small_files() == 0
    # The sink's last snapshot, which stays, still has the former files. The next run removes them.
    assert len(list(tmp_path.rglob("*.parquet"))) == files + 1
    _land(bronze, TOPIC, range(60, 62), '{"0":9}')
    upkeep.expire_snapshots()
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    assert bronze.source.read(TOPIC, (OffsetRange(0, 0, 62),)).count() == 62


def test_files_of_no_snapshot_are_removed_once_they_are_old(
    bronze: Bronze, upkeep: BronzeUpkeep, tmp_path: Path
) -> None:
    known = next(tmp_path.rglob("*.parquet"))
    orphan = known.with_name("orphan.parquet")
    orphan.write_bytes(known.read_bytes())
    assert upkeep.remove_orphans(timedelta(days=3)) == 0
    assert orphan.exists()
    assert upkeep.remove_orphans(timedelta(seconds=-5)) == 1
    assert not orphan.exists()
    assert upkeep.events(TOPIC).count() == 60
    assert bronze.source.topics() == {TOPIC, OTHER}
