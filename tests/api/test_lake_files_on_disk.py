"""Tables, timelines and quarantines are read from the files in a bucket."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from spark_app.ledger.ledger import LEDGER_KEY, Ledger, SourceTimes
from tributary.api.quarantine import read_quarantine
from tributary.api.tables import LakeTable, UnknownTable, find_table, read_silver_tables
from tributary.api.timeline import Commit, read_commits, read_last_commit
from tributary.contract.naming import LakeNames
from tributary.contract.table_name import TableName

NAMES = LakeNames("shop")
ORDERS = TableName("erp", "public", "orders")
ODD = TableName("erp", "Sales Ops", "_größe")


@pytest.fixture
def buckets(tmp_path: Path) -> SubTreeFileSystem:
    return SubTreeFileSystem(str(tmp_path), LocalFileSystem())


def _make_table(folder: Path, table: TableName) -> Path:
    timeline = folder / NAMES.silver_bucket / NAMES.table_path(table) / ".hoodie"
    timeline.mkdir(parents=True)
    (timeline / "hoodie.properties").touch()
    _write_instant(timeline, "20251231000000000.deltacommit", None)
    return timeline


def _write_instant(timeline: Path, name: str, ledger: Ledger | None, completed: float = 0) -> None:
    extra = {} if ledger is None else {LEDGER_KEY: ledger.to_json()}
    statistics = {"numInserts": 3, "numUpdateWrites": 2, "numDeletes": 1, "totalWriteBytes": 1_500}
    metadata = {"partitionToWriteStats": {"": [statistics, statistics]}, "extraMetadata": extra}
    (timeline / name).write_text(json.dumps(metadata))
    os.utime(timeline / name, (completed, completed))


def test_tables_with_any_names_are_found_by_their_paths(tmp_path: Path, buckets: SubTreeFileSystem) -> None:
    for table in (ORDERS, ODD):
        _make_table(tmp_path, table)
    (tmp_path / NAMES.silver_bucket / "erp" / "public" / "begun_but_never_made").mkdir()
    begun = _make_table(tmp_path, TableName("erp", "public", "in its first commit"))
    (begun / "20251231000000000.deltacommit").rename(begun / "20251231000000000.deltacommit.inflight")
    assert read_silver_tables(buckets, NAMES, NAMES.silver_bucket) == tuple(
        LakeTable(name, f"{NAMES.silver_bucket}/{NAMES.table_path(name)}") for name in sorted((ORDERS, ODD))
    )


def test_a_lake_without_a_bucket_has_no_tables(buckets: SubTreeFileSystem) -> None:
    assert read_silver_tables(buckets, NAMES, NAMES.silver_bucket) == ()


def test_a_table_is_found_by_each_of_its_names_and_similar_names_are_suggested() -> None:
    tables = [LakeTable(name, "") for name in (ORDERS, TableName("erp", "archive", "orders"), ODD)]
    assert find_table(tables, "erp.public.orders").name == ORDERS
    assert find_table(tables, "public.orders").name == ORDERS
    assert find_table(tables, "_größe").name == ODD
    with pytest.raises(
        UnknownTable, match=r"erp\.archive\.orders or erp\.public\.orders|erp\.public\.orders or"
    ):
        find_table(tables, "orders")
    with pytest.raises(UnknownTable, match=r"Did you mean .*erp\.public\.orders"):
        find_table(tables, "public.order")
    with pytest.raises(UnknownTable, match="no table at all"):
        find_table([], "orders")


def test_the_latest_commits_with_a_ledger_are_read_newest_first(
    tmp_path: Path, buckets: SubTreeFileSystem
) -> None:
    timeline = _make_table(tmp_path, ORDERS)
    first = Ledger(
        "topic", positions={0: 5}, events=5, source_times=SourceTimes(0, 1_000_000, 2_000_000, 3_000_000)
    )
    second = replace(first, positions={0: 9}, events=4, source_times=None)
    _write_instant(timeline, "20260101000000000.deltacommit", first, completed=10)
    _write_instant(timeline, "20260101000001000.deltacommit", second, completed=11)
    _write_instant(timeline, "20260101000002000.commit", None)
    _write_instant(timeline, "20260101000003000.deltacommit.inflight", replace(first, positions={0: 99}))
    (timeline / "20260101000004000.clean").write_bytes(b"not JSON")

    path = f"{NAMES.silver_bucket}/{NAMES.table_path(ORDERS)}"
    newest, oldest = read_commits(buckets, path, limit=10)

    assert (newest.ledger, oldest.ledger) == (second, first)
    assert (oldest.rows, oldest.deletes, oldest.written) == (10, 2, 3_000)
    assert oldest.completed == datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC)
    assert newest.freshness is None
    assert oldest.freshness is not None
    assert (oldest.freshness.p50, oldest.freshness.p95, oldest.freshness.max) == (8_000, 9_000, 10_000)
    assert read_commits(buckets, path, limit=1) == (newest,)
    assert read_last_commit(buckets, path) == newest


def test_a_table_without_a_commit_has_no_last_commit(tmp_path: Path, buckets: SubTreeFileSystem) -> None:
    _make_table(tmp_path, ORDERS)
    assert read_last_commit(buckets, f"{NAMES.silver_bucket}/{NAMES.table_path(ORDERS)}") is None


def _quarantine_file(path: Path, offset: int, message: str, at: int) -> None:
    path.parent.mkdir(parents=True)
    moment = pa.timestamp("us", "UTC")
    row = {
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "timestamp": None,
        "key": b"\xff",
        "value": None,
        "moved_to": None,
        "moved_from": None,
        "reason": "not_json",
        "message": message,
        "quarantined_at": datetime.fromtimestamp(at, UTC),
    }
    table = pa.Table.from_pylist([row])
    for name in ("timestamp", "quarantined_at"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(moment))
    parquet.write_table(table, path)


def test_an_event_that_was_set_aside_twice_is_one_event(tmp_path: Path, buckets: SubTreeFileSystem) -> None:
    folder = tmp_path / "shop-quarantine" / "orders"
    _quarantine_file(folder / "e0-p0-0-9" / "part-0.parquet", 7, "the older one", at=1)
    _quarantine_file(folder / "e0-p0-0-12" / "part-0.parquet", 7, "the newer one", at=2)
    _quarantine_file(folder / "e0-p0-3-4" / "part-0.parquet", 3, "another", at=3)
    _quarantine_file(folder / "_temporary" / "part-0.parquet", 4, "never completed", at=4)

    events = read_quarantine(buckets, "shop-quarantine/orders")

    assert [(event.position, event.message, event.key) for event in events] == [
        ("0:3", "another", b"\xff"),
        ("0:7", "the newer one", b"\xff"),
    ]


def test_a_table_without_a_quarantine_folder_has_no_quarantined_events(buckets: SubTreeFileSystem) -> None:
    assert read_quarantine(buckets, "shop-quarantine/nothing") == ()


@pytest.mark.parametrize(
    ("instant", "completed", "seconds"),
    [("20260101000000000", 10, 10), ("20260101000000999", 1, 0), ("20260101000000400", 0, 0)],
)
def test_a_commit_takes_from_its_instant_to_its_end_in_whole_seconds(
    instant: str, completed: int, seconds: int
) -> None:
    ended = datetime(2026, 1, 1, second=completed, tzinfo=UTC)
    assert Commit(instant, ended, 1, 0, Ledger("t")).took.total_seconds() == seconds
