"""The second engine, registered for the duration of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connectors.engines import registry as engines
from stacks.database import registry as on_aws
from tests.engines.abacus import AbacusEngine, AbacusServer, AbacusSource
from tests.engines.abacus_on_aws import AbacusOnAws
from tributary.contract.engines import registry as entries


@pytest.fixture
def abacus() -> Iterator[AbacusServer]:
    """The one server of the engine `abacus`, which is in each registry."""
    with registered() as server:
        yield server


@contextmanager
def registered() -> Iterator[AbacusServer]:
    """Register the engine as long as the context lasts."""
    server = AbacusServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(entries.SOURCES, "abacus", AbacusSource)
        patch.setitem(engines.ENGINES, "abacus", AbacusEngine(server))
        patch.setitem(on_aws.ENGINES_ON_AWS, "abacus", AbacusOnAws())
        yield server
