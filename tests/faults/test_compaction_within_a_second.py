"""S3 tells modification times in whole seconds; no row is lost after a compaction that took less than one."""

from __future__ import annotations

import time
from functools import partial

from pyspark.sql import SparkSession

from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.spark_app.debezium import SourceTable


def test_rows_that_come_after_a_compaction_are_read_in_whatever_part_of_a_second_it_began(
    spark: SparkSession, s3: Storage
) -> None:
    table = LakeTable(spark, s3, "compacted")
    table.transact(lambda source: source.insert(0, "first", None))
    table.catch_up()
    for key in range(1, 5):
        table.transact(partial(SourceTable.insert, key=key, name="new", body=None))
        table.catch_up()
        time.sleep(1 - time.time() % 1)

        table.hudi.compact()

        table.transact(partial(SourceTable.insert, key=-key, name="after it", body=None))
        table.catch_up()
        table.check()
