"""The app sets a table's properties so that Hudi makes no needless requests to S3."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.faults.s3_faults import S3Request


def test_a_commit_does_not_look_for_a_bootstrap_index(spark: SparkSession, s3: Storage) -> None:
    table = LakeTable(spark, s3, "properties")
    table.transact(lambda source: source.insert(1, "one", None))
    table.catch_up()
    asked: list[str] = []

    def ask(request: S3Request) -> bool:
        asked.append(request.key)
        return False

    table.transact(lambda source: source.update(1, f"at {source.lsn}", None, body_is_unchanged=True))
    table.storage.faults.refuses = ask
    try:
        table.catch_up()
    finally:
        table.storage.faults.mend()
    assert any("/.hoodie/hoodie.properties" in key for key in asked)
    assert not [key for key in asked if "/.bootstrap/" in key]
    table.check()
