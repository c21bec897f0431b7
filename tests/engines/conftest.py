"""The second engine, known for as long as a test lasts."""

from __future__ import annotations

import pytest

from connectors.engines import registry as engines
from tests.engines.abacus import AbacusEngine, AbacusServer, AbacusSource
from tributary.contract.engines import registry as entries


@pytest.fixture
def abacus(monkeypatch: pytest.MonkeyPatch) -> AbacusServer:
    """The one server of the engine `abacus`, which has its line in each registry."""
    server = AbacusServer()
    monkeypatch.setitem(entries.SOURCES, "abacus", AbacusSource)
    monkeypatch.setitem(engines.ENGINES, "abacus", AbacusEngine(server))
    return server
