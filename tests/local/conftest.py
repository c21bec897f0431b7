"""A pipeline that the tests of the local servers share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tributary.contract.lake import parse_lake
from tributary.local.pipeline import RunningPipeline, down, up
from tributary.local.state import StateFolder


@pytest.fixture(scope="package")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """PostgreSQL, Kafka, Connect and S3 with both connectors, for the tests of this folder.

    The lake is `shop-tests`. Its source `shop` takes all tables of schema `public` in a database `shop`.
    Tests create their own tables and leave the servers unchanged.
    """
    state = StateFolder(tmp_path_factory.mktemp("pipeline") / "state")
    lake = parse_lake(
        """
        [lake]
        name = "shop-tests"

        [source.shop]
        engine = "postgres"
        database = "shop"
        tables = ["public.*"]
        """
    )
    try:
        yield up(lake, state)
    finally:
        down(state)
        shutil.rmtree(state.path)
