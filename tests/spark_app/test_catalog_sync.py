"""The catalog follows the tables, and whether it can be had makes no difference to them."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from spark_app.catalog.glue import GlueCatalog, glue_client
from spark_app.catalog.sync import CatalogPace, CatalogSync
from spark_app.columns.table_columns import TableColumns
from spark_app.reports import ProgressWriter
from tests.spark_app.glue import DATABASE, FAST, Glue
from tributary.contract.lake import TablePolicy

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient


@dataclass
class StoredTable:
    path: str = "s3a://silver/orders"
    policy: TablePolicy = field(default_factory=TablePolicy)
    held: frozenset[str] = frozenset()
    listings: int = 0

    def partitions(self) -> frozenset[str]:
        self.listings += 1
        return self.held


@dataclass
class Offered:
    """A table after a commit."""

    name: str = "orders"
    hudi: StoredTable = field(default_factory=StoredTable)
    columns: TableColumns | None = None
    partitions_written: frozenset[str] = frozenset()


def sync_to(client: GlueClient, pace: CatalogPace = FAST) -> tuple[CatalogSync, io.StringIO]:
    out = io.StringIO()
    return CatalogSync(GlueCatalog(client, DATABASE), lambda name: name, ProgressWriter(out), pace), out


def settle(sync: CatalogSync) -> None:
    deadline = time.monotonic() + 10
    sync.step()
    while sync._is_busy and time.monotonic() < deadline:
        time.sleep(0.005)
        sync.step()
    assert not sync._is_busy


def reports(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def columns(**types: DataType) -> TableColumns:
    return TableColumns((("id", LongType()), *types.items()), ("id",))


def test_a_table_is_shown_under_its_names_and_no_further_commit_asks_glue_anything(glue: Glue) -> None:
    sync, out = sync_to(glue.client)
    table = Offered(columns=columns(name=StringType()))
    sync.offer(table)
    settle(sync)
    for view in ("orders", "orders_ro", "orders_rt"):
        assert glue.columns(view) == {"id": "bigint", "name": "string"}

    glue.requests.clear()
    for _ in range(5):
        table.columns = columns(name=StringType())
        sync.offer(table)
        settle(sync)
    assert glue.requests == []
    assert [report["event"] for report in reports(out)] == ["cataloged"]
    assert sync.finish() == {}


def test_an_added_and_a_widened_column_reach_the_table_and_each_of_its_partitions(glue: Glue) -> None:
    hudi = StoredTable(policy=TablePolicy(partition_by=("region",)), held=frozenset({"region=eu"}))
    sync, _ = sync_to(glue.client)
    table = Offered(hudi=hudi, columns=columns(region=StringType(), n=IntegerType()))
    sync.offer(table)
    settle(sync)
    before = glue.partitions("orders")

    table.columns = columns(region=StringType(), n=LongType(), added=StringType())
    sync.offer(table)
    settle(sync)
    assert glue.columns("orders_ro") == {"id": "bigint", "n": "bigint", "added": "string"}
    assert glue.partitions("orders") == {values: count + 1 for values, count in before.items()}
    assert before.keys() == {("eu",)}


def test_a_partition_that_a_commit_made_is_added_without_another_look_at_the_others(glue: Glue) -> None:
    hudi = StoredTable(policy=TablePolicy(partition_by=("region",)), held=frozenset({"region=eu"}))
    sync, _ = sync_to(glue.client)
    table = Offered(hudi=hudi, columns=columns(region=StringType()))
    sync.offer(table)
    settle(sync)
    glue.requests.clear()

    table.partitions_written = frozenset({"region=eu", "region=u%2Fs"})
    sync.offer(table)
    settle(sync)
    assert glue.requests == ["BatchCreatePartition"] * 3
    assert hudi.listings == 1
    for view in ("orders", "orders_ro", "orders_rt"):
        assert glue.partitions(view).keys() == {("eu",), ("u/s",)}


def test_a_run_mends_what_was_changed_while_none_was_there_and_leaves_what_others_added(glue: Glue) -> None:
    hudi = StoredTable(
        policy=TablePolicy(storage="copy_on_write", partition_by=("region",)),
        held=frozenset(f"region={number}" for number in range(230)),
    )
    table = Offered(hudi=hudi, columns=columns(region=StringType()))
    first, _ = sync_to(glue.client)
    first.offer(table)
    settle(first)
    found = glue.client.get_table(DatabaseName=DATABASE, Name="orders")["Table"]
    glue.client.update_table(
        DatabaseName=DATABASE,
        TableInput={
            "Name": "orders",
            "StorageDescriptor": {**found["StorageDescriptor"], "Columns": []},
            "PartitionKeys": found["PartitionKeys"],
            "Parameters": {"owner": "analytics", "spark.sql.sources.schema.part.7": "old"},
        },
    )
    hudi.held = frozenset(f"region={number}" for number in range(100, 330))

    second, _ = sync_to(glue.client)
    second.offer(table)
    settle(second)
    mended = glue.client.get_table(DatabaseName=DATABASE, Name="orders")["Table"]
    assert mended["StorageDescriptor"]["Columns"] == found["StorageDescriptor"]["Columns"]
    assert mended["Parameters"] == {**found["Parameters"], "owner": "analytics"}
    pages = glue.client.get_paginator("get_partitions").paginate(DatabaseName=DATABASE, TableName="orders")
    assert {p["Values"][0] for page in pages for p in page["Partitions"]} == {str(n) for n in range(100, 330)}


def test_a_run_that_finds_all_as_it_is_changes_nothing(glue: Glue) -> None:
    hudi = StoredTable(policy=TablePolicy(partition_by=("region",)), held=frozenset({"region=eu"}))
    for _ in range(2):
        glue.requests.clear()
        sync, _ = sync_to(glue.client)
        sync.offer(Offered(hudi=hudi, columns=columns(region=StringType())))
        settle(sync)
    assert set(glue.requests) == {"GetDatabase", "GetTable", "GetPartitions"}


def test_a_catalog_that_is_away_is_tried_again_though_nothing_more_is_committed(glue: Glue) -> None:
    glue.fail(3)
    sync, out = sync_to(glue.client)
    sync.offer(Offered(columns=columns(name=StringType())))
    settle(sync)

    assert glue.columns("orders") == {"id": "bigint", "name": "string"}
    assert [report["event"] for report in reports(out)] == ["catalog_failed"] * 3 + ["cataloged"]
    assert [report["attempt"] for report in reports(out)[:3]] == [1, 2, 3]
    assert sync.finish() == {}


@pytest.mark.usefixtures("glue_environment")
def test_a_run_that_ends_without_the_catalog_says_so_after_some_patience() -> None:
    nowhere = glue_client("http://127.0.0.1:1")
    sync, _ = sync_to(nowhere, CatalogPace(0.01, 0.02, patience_seconds=0.3))
    started = time.monotonic()
    sync.offer(Offered(columns=columns()))
    sync.step()
    assert time.monotonic() - started < 0.2
    (error,) = sync.finish().values()
    assert "127.0.0.1:1" in error


def test_a_table_that_no_catalog_can_show_is_told_once_and_shown_when_it_can_be(glue: Glue) -> None:
    sync, out = sync_to(glue.client)
    table = Offered(columns=columns(Name=StringType(), name=StringType()))
    for _ in range(3):
        sync.offer(table)
        settle(sync)
    assert [report["retry_in_seconds"] for report in reports(out)] == [None]
    other = Offered("other", columns=columns())
    sync.offer(other)
    settle(sync)
    assert glue.columns("other") == {"id": "bigint"}
    assert list(sync.finish()) == ["orders"]
