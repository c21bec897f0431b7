"""Files of a table are removed in few requests, and those that S3 has not removed are not taken for gone."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_app.file_removal import FilesNotRemoved, remove_files
from tests.faults.lake_on_s3 import BUCKET, Storage

FOLDER = "removal/region=a%20b & <c>"
FILES = [f".{number}.log.1_0-0-0" for number in range(1_001)]


def test_more_files_than_a_request_takes_are_removed_and_no_other(spark: SparkSession, s3: Storage) -> None:
    folder = s3.bucket / FOLDER
    folder.mkdir(parents=True)
    for name in [*FILES, "stays.parquet"]:
        (folder / name).touch()

    for _ in range(2):
        remove_files(spark, f"s3a://{BUCKET}/{FOLDER}", FILES)

    assert [path.name for path in folder.iterdir()] == ["stays.parquet"]


def test_what_s3_does_not_remove_is_told(spark: SparkSession, s3: Storage) -> None:
    s3.faults.refuses = lambda request: request.method == "POST"
    try:
        with pytest.raises(FilesNotRemoved, match=f"files of {BUCKET}.*Reduce your request rate"):
            remove_files(spark, f"s3a://{BUCKET}/{FOLDER}", FILES[:1])
    finally:
        s3.faults.mend()
