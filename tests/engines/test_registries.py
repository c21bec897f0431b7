"""The registries of engines agree, and none contains the engine that only tests register."""

from __future__ import annotations

import pytest

from connectors.engines.registry import ENGINES
from stacks.database.registry import ENGINES_ON_AWS
from tests.engines.lakes import lake_with
from tributary.contract.engines.registry import SOURCES
from tributary.contract.lake import LakeFileError
from tributary.local.engine_servers import ENGINE_SERVERS


def test_every_engine_is_in_every_registry() -> None:
    assert SOURCES.keys() == ENGINES.keys() == ENGINES_ON_AWS.keys()
    assert ENGINE_SERVERS.keys() <= ENGINES.keys()
    for name, source in SOURCES.items():
        assert source.model_fields["engine"].annotation.__args__ == (name,)  # type: ignore[union-attr]


def test_no_lake_file_can_name_the_engine_of_the_tests() -> None:
    with pytest.raises(LakeFileError, match=r'\[source\.counter\]\.engine.*found "abacus".*"postgres"'):
        lake_with()
