"""The registries of engines agree, and none contains the engine that only tests register."""

from __future__ import annotations

import pytest

from connectors.engines.registry import ENGINES
from spark_app.positions.registry import SOURCE_LOGS
from stacks.database.registry import ENGINES_ON_AWS
from tests.engines.lakes import lake_with
from tributary.contract.engines.registry import SOURCES
from tributary.contract.lake import LakeFileError
from tributary.contract.source import Source
from tributary.local.engine_servers import ENGINE_SERVERS


def test_every_engine_is_in_every_registry() -> None:
    of_items = {name for name, source in SOURCES.items() if source.item_stream is not Source.item_stream}
    assert of_items == {"dynamodb"}
    assert SOURCES.keys() - of_items == ENGINES.keys() == ENGINES_ON_AWS.keys()
    assert SOURCES.keys() == SOURCE_LOGS.keys()
    assert ENGINE_SERVERS.keys() <= ENGINES.keys()
    for name, source in SOURCES.items():
        assert source.model_fields["engine"].annotation.__args__ == (name,)  # type: ignore[union-attr]


def test_a_source_says_that_it_is_verifiable_exactly_if_its_engine_can_split_tables() -> None:
    split = {name for name, engine in ENGINES.items() if engine.parts is not None}
    assert {name for name, source in SOURCES.items() if source.is_verifiable} == split


def test_no_lake_file_can_name_the_engine_of_the_tests() -> None:
    with pytest.raises(LakeFileError, match=r'\[source\.counter\]\.engine.*found "abacus".*"postgres"'):
        lake_with()
