"""Files are removed with few requests, and a file that S3 did not remove does not count as removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.file_removal import FilesNotRemoved, remove_files, remove_files_in_order
from tests.faults.lake_on_s3 import BUCKET, Storage
from tests.faults.s3_faults import S3Request

Removal = Callable[[SparkSession, str, list[str]], None]

FOLDER = "removal/region=a%20b & <c>"
FILES = [f".{number}.log.1_0-0-0" for number in range(1_001)]


def test_more_files_than_a_request_takes_are_removed_and_no_other(spark: SparkSession, s3: Storage) -> None:
    folder = s3.bucket / FOLDER
    folder.mkdir(parents=True)
    for name in [*FILES, "stays.parquet"]:
        (folder / name).touch()

    for _ in range(2):
        remove_files(spark, f"s3a://{BUCKET}/{FOLDER}", FILES)
        remove_files_in_order(spark, f"s3a://{BUCKET}/{FOLDER}", FILES[:2])

    assert [path.name for path in folder.iterdir()] == ["stays.parquet"]


def test_files_are_removed_one_after_the_other_in_order(spark: SparkSession, s3: Storage) -> None:
    folder = s3.bucket / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ordered = FILES[:6]
    for name in ordered:
        (folder / name).touch()
    left: list[list[str]] = []

    def look(request: S3Request) -> bool:
        if request.method == "DELETE":
            left.append([name for name in ordered if (folder / name).exists()])
        return False

    s3.faults.refuses = look
    try:
        remove_files_in_order(spark, f"s3a://{BUCKET}/{FOLDER}", ordered)
    finally:
        s3.faults.mend()

    assert left == [ordered[number:] for number in range(6)]


@pytest.mark.parametrize("remove", [remove_files, remove_files_in_order])
def test_a_file_that_s3_does_not_remove_is_reported(
    spark: SparkSession, s3: Storage, remove: Removal
) -> None:
    s3.faults.refuses = lambda request: request.method in ("POST", "DELETE")
    try:
        with pytest.raises(FilesNotRemoved, match=f"files of {BUCKET}.*Reduce your request rate"):
            remove(spark, f"s3a://{BUCKET}/{FOLDER}", FILES[:2])
    finally:
        s3.faults.mend()
