"""The engines that have a server on this machine, for sources without a connection in the lake file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from connectors.engines.engine import Login
from connectors.engines.registry import engine_of
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local import mariadb, postgres
from tributary.local.state import LocalSettings

HOST = "127.0.0.1"


class NoServerHere(TributaryError):
    """A source needs a connection, because `tributary up` starts no server of its engine."""


@dataclass(frozen=True)
class EngineServer:
    """A server that `tributary up` starts. The step of the same name also creates its sources' databases.

    service  its name among the services
    admin    returns the port, the user and the password of its administrator
    """

    service: str
    admin: Callable[[LocalSettings], Login]


def _postgres_admin(settings: LocalSettings) -> Login:
    return Login(HOST, settings.ports.postgres, postgres.ADMIN, settings.secrets.postgres_admin)


def _mariadb_admin(settings: LocalSettings) -> Login:
    port = settings.ports.mariadb
    assert port is not None, "every start chooses a port"
    return Login(HOST, port, mariadb.ADMIN, settings.secrets.mariadb_admin)


ENGINE_SERVERS: dict[str, EngineServer] = {
    "postgres": EngineServer(postgres.SERVICE, _postgres_admin),
    "mariadb": EngineServer(mariadb.SERVICE, _mariadb_admin),
}
"""The servers by the engine's name in the lake file."""


def servers_for(lake: Lake) -> tuple[str, ...]:
    """Return the services that hold the databases of the lake's sources here. Raises NoServerHere."""
    here = (server_of(source).service for source in lake.connected_sources if source.connection is None)
    return tuple(sorted({*here}))


def server_of(source: Source) -> EngineServer:
    """Return the server that holds the source's database here. Raises NoServerHere."""
    try:
        return ENGINE_SERVERS[source.engine]
    except KeyError:
        raise NoServerHere(
            f"Tributary starts no {engine_of(source).title} on this machine",
            where=f"[source.{source.name}]",
            found="no connection",
            expected=f"a section [source.{source.name}.connection] that names your own server",
        ) from None
