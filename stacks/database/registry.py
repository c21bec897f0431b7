"""Which engines can be built on AWS, and which of them a lake uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.database.binlog.engine import MariaDbOnAws
from stacks.database.engine import CreatingEngineOnAws, EngineOnAws
from stacks.database.mysql.engine import MySqlOnAws
from stacks.database.postgres.engine import PostgresOnAws
from stacks.database.sqlserver.engine import SqlServerOnAws
from tributary.contract.lake import Lake
from tributary.contract.source import Source

AnyEngineOnAws = EngineOnAws[Any, Any]

ENGINES_ON_AWS: dict[str, AnyEngineOnAws] = {
    "postgres": PostgresOnAws(),
    "mysql": MySqlOnAws(),
    "mariadb": MariaDbOnAws(),
    "sqlserver": SqlServerOnAws(),
}
"""By what the key `engine` of a `[source.NAME]` says."""


def engine_on_aws(source: Source) -> AnyEngineOnAws:
    """Return the source's engine."""
    return ENGINES_ON_AWS[source.engine]


def own_sources(lake: Lake) -> Mapping[CreatingEngineOnAws[Any, Any], list[Source]]:
    """Return the sources whose databases the lake creates on AWS, by their engines."""
    existing = {} if lake.aws is None else lake.aws.source
    found: dict[CreatingEngineOnAws[Any, Any], list[Source]] = {}
    for source in lake.connected_sources:
        if source.name not in existing:
            engine = engine_on_aws(source)
            # The lake file refuses any other (`Source.problems_on_aws`).
            assert isinstance(engine, CreatingEngineOnAws), f"source {source.name} names no existing database"
            found.setdefault(engine, []).append(source)
    return found
