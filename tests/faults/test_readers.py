"""A reader without Spark handles files that were removed after the listing, and files that it cannot read."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.faults.s3_faults import Point
from tests.spark_app.debezium import SourceTable
from tributary.api.rows import UnreadableTable
from tributary.api.time_travel import ReadInSpark
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import ReadRunbook, RebuildTable


@pytest.fixture(scope="module")
def table(spark: SparkSession, s3: Storage) -> LakeTable:
    table = LakeTable(spark, s3, "read", TablePolicy(buckets=1))
    for name in ("old", "new"):
        table.transact(partial(SourceTable.insert, key=1, name=name, body=None))
        table.catch_up()
    return table


def test_a_query_that_meets_a_removed_file_reads_again(table: LakeTable) -> None:
    with file_that_goes_when_it_is_opened(table):
        assert names(table) == ["new"]


def test_an_unreadable_table_is_named_with_the_remedy(table: LakeTable) -> None:
    (base_file,) = folder(table).glob("*.parquet")
    content = base_file.read_bytes()
    base_file.write_bytes(b"no rows")
    with pytest.raises(UnreadableTable, match=r"source\.public\.things") as caught:
        names(table)
    assert RebuildTable("source.public.things") in caught.value.remedies
    base_file.write_bytes(content)
    assert names(table) == ["new"]


def test_older_states_with_arrays_and_later_columns_are_left_to_spark(
    spark: SparkSession, s3: Storage
) -> None:
    table = LakeTable(spark, s3, "arrays", TablePolicy(buckets=1))
    table.source.add_column("tags", "text[]")
    for name in ("old", "older"):
        table.transact(partial(SourceTable.insert, key=len(name), name=name, body=None, tags=[name]))
        table.catch_up()
    before = str(table.hudi.timeline().last_instant)
    table.source.add_column("count", "int")
    table.transact(partial(SourceTable.insert, key=1, name="new", body=None, tags=["new"], count=1))
    table.catch_up()

    assert sorted(names(table)) == ["new", "old", "older"]
    with pytest.raises(ReadInSpark, match="Spark SQL") as caught:
        names(table, as_of=before)
    assert ReadRunbook("older state") in caught.value.remedies


@contextmanager
def file_that_goes_when_it_is_opened(table: LakeTable) -> Iterator[None]:
    """A log file next to the table's own, from a commit that is being rolled back."""
    (log_file,) = folder(table).glob(".*.log.1_*")
    other = log_file.with_name(log_file.name.replace(".log.1_", ".log.2_"))
    shutil.copy(log_file, other)
    faults = table.storage.faults
    faults.hold_at(Point("the other log file", "GET", r"\.log\.2_[^/]+"), "before")

    def remove() -> None:
        if faults.is_reached.wait(60):
            other.unlink()
        faults.mend()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        yield
    finally:
        remover.join()
    assert not other.exists()


def names(table: LakeTable, as_of: str | None = None) -> list[str]:
    return [row["name"] for row in table.rows_without_spark(as_of)]


def folder(table: LakeTable) -> Path:
    return table.storage.bucket / table.name / "table"
