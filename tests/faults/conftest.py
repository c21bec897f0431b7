"""Fixtures of the tests of faults: an S3 server that can fail, and a pipeline whose processes are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.faults.injected import Injected, fault_table
from tests.faults.lake_on_s3 import Storage, storage
from tests.faults.whole_pipeline import Pipeline, whole_pipeline

_INJECTED = pytest.StashKey[list[Injected]]()


@pytest.fixture(scope="session")
def injected(pytestconfig: pytest.Config) -> list[Injected]:
    """The list to which a test adds its faults. They are printed at the end of the run."""
    return pytestconfig.stash.setdefault(_INJECTED, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    faults = config.stash.get(_INJECTED, [])
    if faults:
        terminalreporter.section("faults")
        for line in fault_table(faults):
            terminalreporter.write_line(line)


@pytest.fixture(scope="package")
def s3(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with storage(spark, tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="package")
def at_work(tmp_path_factory: pytest.TempPathFactory, injected: list[Injected]) -> Iterator[Pipeline]:
    """A whole pipeline with an ingest that follows."""
    with whole_pipeline(tmp_path_factory.mktemp("faults"), injected) as pipeline:
        pipeline.follow()
        yield pipeline
