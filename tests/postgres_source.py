"""The PostgreSQL sources of a test's lake."""

from __future__ import annotations

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


def postgres_source(lake: Lake, name: str | None = None) -> PostgresSource:
    """Return the source with this name, or the first one."""
    source = lake.sources[0] if name is None else lake.source(name)
    assert isinstance(source, PostgresSource)
    return source
