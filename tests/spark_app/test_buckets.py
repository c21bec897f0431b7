"""A large batch is sent to the tasks of its buckets once, and is written from there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.hudi.append_writer import AppendWriter
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.spread import RowsInBuckets, Spread
from spark_app.jvm.buckets import JavaBuckets
from spark_app.ledger.commits import last_commit
from spark_app.sources.event import OffsetRange
from spark_app.table import batch_plan
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.memory_source import table_of_things
from tributary.contract.lake import TablePolicy

KEYS = ["", "a", "ä", "\N{GRINNING FACE}", "\0", *(f'{{"id":{n}}}' for n in range(200))]


def test_a_row_is_in_the_task_of_the_bucket_where_hudi_looks_for_its_key(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    hudis = jvm.org.apache.hudi.index.bucket.BucketIdentifier
    held = _buckets(spark, 5).hold(spark.createDataFrame([(key,) for key in KEYS], "key string"))
    found = held.rows.select("key", F.spark_partition_id().alias("task")).collect()
    held.release()
    assert sorted(row["key"] for row in found) == sorted(KEYS)
    assert all(row["task"] == hudis.getBucketId(row["key"], RECORD_KEY, 5) % 2 for row in found)


def test_rows_are_computed_once_until_they_are_released(spark: SparkSession) -> None:
    buckets = _buckets(spark)
    held = buckets.hold(spark.createDataFrame([("a",), ("b",)], "key string").select("key", F.expr("uuid()")))
    first, again = held.rows.collect(), held.rows.collect()
    assert sorted(first) == sorted(again)
    folder = Path(str(spark.conf.get("spark.local.dir")))
    newest = max(folder.rglob("shuffle_*.data"), key=lambda file: file.stat().st_mtime)
    held.release()
    gone_by = time.monotonic() + 30
    while newest.exists():
        assert time.monotonic() < gone_by
        time.sleep(0.05)


def test_the_first_row_of_each_key_comes_bucket_after_bucket(spark: SparkSession) -> None:
    buckets = _buckets(spark, 5)
    rows = spark.createDataFrame([(key, seq) for seq in (1, 3, 2) for key in KEYS], "key string, seq int")
    held = buckets.hold(rows)
    bucket = buckets.bucket_of(F.col("key")).alias("bucket")
    first = buckets.first_of_each_key(held.rows, F.col("seq").desc())
    tasks = first.select("*", bucket).rdd.glom().collect()
    held.release()
    assert sorted((row["key"], row["seq"]) for task in tasks for row in task) == sorted((k, 3) for k in KEYS)
    assert {row["bucket"] for task in tasks for row in task} == set(range(5))
    for task in tasks:
        assert [row["bucket"] for row in task] == sorted(row["bucket"] for row in task)


def test_more_events_have_more_tasks_but_no_more_than_buckets(spark: SparkSession) -> None:
    found = {events: _buckets(spark, 4, events).tasks for events in (20_000, 1_500_000, 5_000_000)}
    assert found == {20_000: 2, 1_500_000: 3, 5_000_000: 4}


@pytest.mark.parametrize(
    "policy",
    [
        TablePolicy(buckets=1),
        TablePolicy(buckets=2, storage="copy_on_write"),
        TablePolicy(buckets=2, partition_by=("id",)),
    ],
    ids=["fewer buckets than tasks", "copy_on_write", "partitions"],
)
def test_not_every_table_has_buckets_to_send_rows_to(spark: SparkSession, policy: TablePolicy) -> None:
    assert HudiTable(spark, "nowhere", "things", policy).buckets(1_000_000) is None


@pytest.mark.parametrize(
    ("deletes", "are_in_buckets"), [("hard", True), ("soft", False)], ids=["hard deletes", "soft deletes"]
)
def test_a_large_batch_whose_changes_say_all_is_written_from_its_buckets(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deletes: Any,
    are_in_buckets: bool,
) -> None:
    source = SourceTable()
    source.begin()
    for number in range(5):
        source.insert(number, f"first {number}", None)
    source.commit()
    loaded = len(source.events)
    source.begin()
    for name in ("changed", "changed again"):
        source.update(1, name, None, body_is_unchanged=False)
    source.delete(2)
    source.insert(9, "new", None)
    source.commit()
    rows = [event_row(sent, offset) for offset, sent in enumerate(source.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=2, deletes=deletes))
    table = table_of_things(hudi, rows, tmp_path)
    written: list[bool] = []
    write = AppendWriter.write

    def noted(self: AppendWriter, rows: DataFrame, metadata: Mapping[str, str], spread: Spread) -> None:
        written.append(spread == RowsInBuckets())
        write(self, rows, metadata, spread)

    monkeypatch.setattr(batch_plan, "EVENTS_OF_ONE_TASK", 1)
    monkeypatch.setattr(AppendWriter, "write", noted)
    table.apply((OffsetRange(0, 0, loaded),))
    table.apply((OffsetRange(0, loaded, len(rows)),))
    assert written == [True, are_in_buckets]
    present = hudi.read().where(F.col("_op") != "d")
    assert {row["id"]: row["name"] for row in present.collect()} == {
        0: "first 0",
        1: "changed again",
        3: "first 3",
        4: "first 4",
        9: "new",
    }
    commit = last_commit(hudi)
    assert commit is not None
    assert commit.rows_upserted + commit.rows_deleted == 3


def _buckets(spark: SparkSession, count: int = 2, events: int = 1_000) -> JavaBuckets:
    buckets = HudiTable(spark, "nowhere", "things", TablePolicy(buckets=count)).buckets(events)
    assert isinstance(buckets, JavaBuckets)
    return buckets
