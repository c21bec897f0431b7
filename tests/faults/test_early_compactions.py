"""A compaction that, by S3's clock, completed before it began loses no row.

S3 reports modification times by its own clock and in whole seconds. Hudi uses one as the completion time.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import partial

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi import compaction
from spark_app.hudi.compaction import StorageClockIsBehind
from spark_app.hudi.table_files import TableFiles
from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.spark_app.debezium import SourceTable
from tributary.contract.lake import TablePolicy


def test_rows_after_a_compaction_are_read_in_whichever_part_of_a_second_it_began(
    spark: SparkSession, s3: Storage
) -> None:
    table = LakeTable(spark, s3, "compacted")
    commit(table, 0)
    for key in range(1, 5):
        commit(table, key)
        time.sleep(1 - time.time() % 1)

        table.hudi.compact()

        commit(table, -key)
        table.check()


def test_rows_hidden_by_an_early_compaction_are_read_again_after_a_restart(
    spark: SparkSession, s3: Storage
) -> None:
    table = compacted(spark, s3, "hidden")
    complete_early(table)
    commit(table, 2)
    assert table.harm().lost == 1
    table.end_process()

    commit(table, 3)

    table.check()


def test_while_the_clock_of_the_storage_is_behind_nothing_is_written_after_a_compaction(
    spark: SparkSession, s3: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted(spark, s3, "behind")
    monkeypatch.setattr(compaction, "SECONDS_S3_MAY_BE_BEHIND", 1)
    write = TableFiles.write
    with monkeypatch.context() as behind:

        def write_by_its_clock(files: TableFiles, path: str, content: bytes) -> None:
            write(files, path, content)
            complete_early(table)

        behind.setattr(TableFiles, "write", write_by_its_clock)
        complete_early(table)
        table.end_process()
        for _ in range(2):
            with pytest.raises(StorageClockIsBehind, match="set both right, or wait"):
                commit(table, 2)
    assert len(table.hudi.timeline().commits) == 2

    commit(table, 3)

    table.check()


def compacted(spark: SparkSession, s3: Storage, name: str) -> LakeTable:
    table = LakeTable(spark, s3, name, TablePolicy(buckets=1))
    commit(table, 0)
    commit(table, 1)
    # Rounded down, a second before the compaction must still be later than the first commit.
    time.sleep(2)
    table.hudi.compact()
    return table


def commit(table: LakeTable, key: int) -> None:
    table.transact(partial(SourceTable.insert, key=key, name="new", body=None))
    table.catch_up()


def complete_early(table: LakeTable) -> None:
    """Set the completion time of the table's compaction to a second before it was requested."""
    (completed_file,) = (table.storage.bucket / table.name / "table" / ".hoodie").glob("*.commit")
    requested = datetime.strptime(completed_file.stem, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    completed = requested.timestamp() - 1
    os.utime(completed_file, (completed, completed))
