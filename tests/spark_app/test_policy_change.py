"""A policy that changes while a table has rows is applied exactly, or refused with its entries."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Literal

import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.table.policy_change import PolicyChanged
from spark_app.table.rebuild import rebuild_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import Ingest

Storage = Literal["merge_on_read", "copy_on_write"]
STORAGES: tuple[Storage, ...] = ("merge_on_read", "copy_on_write")


@pytest.mark.parametrize("storage", first_then_long(STORAGES))
@pytest.mark.parametrize("first", ["hard", "soft"])
def test_after_a_change_of_deletes_all_rows_have_the_form_of_the_new_kind(
    spark: SparkSession, tmp_path: Path, storage: Storage, first: Literal["hard", "soft"]
) -> None:
    hard = TablePolicy(storage=storage, deletes="hard")
    soft = TablePolicy(storage=storage, deletes="soft")
    before, after = (hard, soft) if first == "hard" else (soft, hard)
    shop = _shop(1, 2, 3)
    _delete(shop, 2)
    table = _apply_all(spark, tmp_path, before, shop)
    assert _rows(table) == ({1: None, 3: None} if first == "hard" else {1: False, 2: True, 3: False})

    table = _table(spark, tmp_path, after, shop)
    table.recover()
    # Without any new event, and for each reader.
    now = None if first == "soft" else False
    assert _rows(table) == _rows_by_hudi_rs(table) == {1: now, 3: now}
    assert table.ledger.positions == {0: len(shop.events)}
    written = table.hudi.timeline().last_instant
    table = _table(spark, tmp_path, after, shop)
    table.recover()
    assert table.hudi.timeline().last_instant == written

    _delete(shop, 1)
    _insert(shop, 4)
    table = _apply_all(spark, tmp_path, after, shop)
    expected = {3: None, 4: None} if first == "soft" else {1: True, 3: False, 4: False}
    assert _rows(table) == _rows_by_hudi_rs(table) == expected


@pytest.mark.parametrize(
    ("changed", "found", "expected"),
    [
        ({"storage": "copy_on_write"}, 'storage = "merge_on_read"', 'storage = "copy_on_write"'),
        ({"buckets": 3}, "buckets = 2", "buckets = 3"),
        ({"partition_by": ("name",)}, "partition_by = []", 'partition_by = ["name"]'),
        ({"partition_by": ("right(id,1)",)}, "partition_by = []", 'partition_by = ["right(id, 1)"]'),
        (
            {"storage": "copy_on_write", "buckets": 1},
            'storage = "merge_on_read", buckets = 2',
            'storage = "copy_on_write", buckets = 1',
        ),
    ],
)
def test_another_layout_is_refused_until_the_lake_file_is_changed_back_or_the_table_is_loaded_anew(
    spark: SparkSession, tmp_path: Path, changed: dict[str, Any], found: str, expected: str
) -> None:
    before = TablePolicy(storage="merge_on_read", buckets=2)
    after = before.model_copy(update=changed)
    shop = _shop(1, 2, 3)
    _apply_all(spark, tmp_path, before, shop)

    _insert(shop, 4)
    table = _table(spark, tmp_path, after, shop)
    for work in (table.recover, lambda: rebuild_table(table)):
        with pytest.raises(PolicyChanged, match=re.escape(f"found {found}, expected {expected}")) as caught:
            work()
        assert Ingest(events_from="bronze") in caught.value.remedies

    back = _apply_all(spark, tmp_path, before, shop)
    assert set(_rows(back)) == {1, 2, 3, 4}
    shutil.rmtree(tmp_path / "silver")
    anew = _apply_all(spark, tmp_path, after, shop)
    assert set(_rows(anew)) == {1, 2, 3, 4}
    assert anew.hudi.stored_as().storage == after.storage
    assert anew.hudi.stored_as().partition_by == tuple(map(str, after.partitions))
    assert anew.ledger.buckets == after.buckets


def _shop(*keys: int) -> SourceTable:
    shop = SourceTable()
    for key in keys:
        _insert(shop, key)
    return shop


def _insert(shop: SourceTable, key: int) -> None:
    shop.begin()
    shop.insert(key, f"name {key}", None)
    shop.commit()


def _delete(shop: SourceTable, key: int) -> None:
    shop.begin()
    shop.delete(key)
    shop.commit()


def _table(spark: SparkSession, folder: Path, policy: TablePolicy, shop: SourceTable) -> TableIngest:
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(folder / "silver"), "things", policy)
    source = MemorySource(spark, rows)
    return TableIngest("things", TOPIC, source, hudi, str(folder / "quarantine"), TopicForm(PostgresLog()))


def _apply_all(spark: SparkSession, folder: Path, policy: TablePolicy, shop: SourceTable) -> TableIngest:
    table = _table(spark, folder, policy, shop)
    table.apply(table.pending(table.source.extents(frozenset({TOPIC}))[TOPIC], limit=1000))
    return table


def _rows(table: TableIngest) -> dict[int, bool | None]:
    """Return `_deleted` by key; None if the table has no such column."""
    return {row["id"]: row.asDict().get("_deleted") for row in table.hudi.read().collect()}


def _rows_by_hudi_rs(table: TableIngest) -> dict[int, bool | None]:
    batches = HudiTableBuilder.from_base_uri(f"file://{table.hudi.path}").build().read()
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row["id"]: row.get("_deleted") for row in rows}
