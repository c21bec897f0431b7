"""The sources of a test's lake as the engine PostgreSQL takes them."""

from __future__ import annotations

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake


def postgres_source(lake: Lake, name: str | None = None) -> PostgresSource:
    """The source of that name, else the first one."""
    source = lake.sources[0] if name is None else lake.source(name)
    assert isinstance(source, PostgresSource)
    return source
