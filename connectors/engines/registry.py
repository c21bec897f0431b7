"""The database engines, and how to find the engine of a source or a connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.engines.engine import Engine
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from connectors.engines.postgres.engine import PostgresEngine
from connectors.engines.sqlserver.engine import SqlServerEngine
from tributary.contract.remedies import Remedies
from tributary.contract.source import Source

AnyEngine = Engine[Any, Any]

ENGINES: dict[str, AnyEngine] = {
    "postgres": PostgresEngine(),
    "mysql": MySqlEngine(),
    "mariadb": MariaDbEngine(),
    "sqlserver": SqlServerEngine(),
}
"""The engines by the key `engine` of a `[source.NAME]`."""


def engine_of(source: Source) -> AnyEngine:
    """Return the source's engine."""
    return ENGINES[source.engine]


def engine_of_connector(config: Mapping[str, str]) -> AnyEngine | None:
    """Return the engine whose connector has this config, or None if no engine has it."""
    connector_class = config.get("connector.class")
    return next((one for one in ENGINES.values() if one.connector_class == connector_class), None)


def source_plugins() -> frozenset[str]:
    """Return the sets of the plugin lock that the engines' connectors run from."""
    return frozenset(engine.plugin for engine in ENGINES.values())


def remedies() -> dict[str, Remedies]:
    """Return what to do about a failed connector of any engine, by a part of the failure's text."""
    return {words: remedy for engine in ENGINES.values() for words, remedy in engine.remedies().items()}
