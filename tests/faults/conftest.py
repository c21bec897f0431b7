"""What the tests of faults share: an S3 server that can fail, and a pipeline of which parts are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.faults.lake_on_s3 import Storage, storage
from tests.faults.whole_pipeline import Pipeline, whole_pipeline


@pytest.fixture(scope="package")
def s3(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with storage(spark, tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="package")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A whole pipeline whose ingest follows."""
    with whole_pipeline(tmp_path_factory.mktemp("faults")) as pipeline:
        pipeline.follow()
        yield pipeline
