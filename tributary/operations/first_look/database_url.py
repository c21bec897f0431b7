"""Take the URL of a database apart, without showing its password to anyone."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import SecretStr

from connectors.engines.engine import NotADatabaseUrl
from connectors.engines.registry import ENGINES
from connectors.engines.survey import DatabaseAddress


@dataclass(frozen=True)
class DatabaseUrl:
    """A database's address, the key of its engine, and the password if the URL has one."""

    engine: str
    address: DatabaseAddress
    password: SecretStr | None = None


def parse_database_url(text: str) -> DatabaseUrl:
    """Parse `scheme://user@host:port/database?option=value`. Raises NotADatabaseUrl."""
    found = urlsplit(text)
    engine = next((key for key, one in ENGINES.items() if found.scheme in one.schemes), None)
    if engine is None:
        schemes = [f"{scheme}://" for one in ENGINES.values() for scheme in one.schemes]
        raise _error(
            "not the URL of a database", f"{found.scheme}://…" if found.scheme else "no scheme", schemes
        )
    if not found.hostname or not found.username:
        lacking = "no host" if not found.hostname else "no user"
        raise _error("the URL is not complete", lacking, [f"{found.scheme}://user@host/database"])
    address = DatabaseAddress(
        scheme=found.scheme,
        user=unquote(found.username),
        host=found.hostname,
        port=_port(found),
        database=unquote(found.path.removeprefix("/")),
        options=dict(parse_qsl(found.query)),
    )
    password = None if found.password is None else SecretStr(unquote(found.password))
    return DatabaseUrl(engine, address, password)


def _port(found: SplitResult) -> int | None:
    try:
        return found.port
    except ValueError:
        port = found.netloc.rpartition(":")[2]
        # Other text may be a part of a password.
        told = port if port.isdigit() else "a port that is no number"
        raise _error("the URL has no usable port", told, ["a number from 1 to 65535"]) from None


def _error(what: str, found: str, expected: list[str]) -> NotADatabaseUrl:
    return NotADatabaseUrl(what, where="CONNECTION", found=found, expected=" or ".join(expected))
