"""A file that is removed between a reader's listing and its opening, as by a rollback, fails no query."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cli.lake_reader import UnreadableTable, read_table
from cli.lake_tables import LakeTable as TableOfLake
from contract.lake import TablePolicy
from contract.table_name import TableName
from tests.faults.lake_on_s3 import BUCKET, LakeTable, Storage
from tests.faults.s3_faults import Point
from tests.spark_app.debezium import SourceTable

NAME = TableName("shop", "public", "things")


@pytest.fixture(scope="module")
def table(spark: SparkSession, s3: Storage) -> LakeTable:
    table = LakeTable(spark, s3, "read", TablePolicy(buckets=1))
    for name in ("old", "new"):
        table.transact(partial(SourceTable.insert, key=1, name=name, body=None))
        table.catch_up()
    return table


def test_a_query_that_meets_a_file_that_is_gone_reads_anew(table: LakeTable) -> None:
    with file_that_goes_when_it_is_opened(table):
        assert names(table) == ["new"]


def test_a_table_that_cannot_be_read_is_named_with_what_to_do(table: LakeTable) -> None:
    (base_file,) = folder(table).glob("*.parquet")
    content = base_file.read_bytes()
    base_file.write_bytes(b"no rows")
    with pytest.raises(UnreadableTable, match=r"shop\.public\.things.*tributary rebuild"):
        names(table)
    base_file.write_bytes(content)
    assert names(table) == ["new"]


@contextmanager
def file_that_goes_when_it_is_opened(table: LakeTable) -> Iterator[None]:
    """A log file beside the table's own, as of a commit that is being rolled back."""
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


def names(table: LakeTable) -> list[str]:
    return [
        row["name"] for row in read_table(table.storage.files, TableOfLake(NAME, path(table))).to_pylist()
    ]


def folder(table: LakeTable) -> Path:
    return table.storage.bucket / table.name / "table"


def path(table: LakeTable) -> str:
    return f"{BUCKET}/{table.name}/table"
