"""Reach a SQL Server, and tell what it refuses from what only takes time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import pymssql

from connectors.engines.sqlserver.session import Session, number_of, open_session, told_by

Result = TypeVar("Result")

ROOTS = Path(__file__).with_name("rds.pem")
"""The roots of the certificates of Amazon's databases. The deployment puts them here."""

_PAUSE_SECONDS = 5.0
_STATEMENT_SECONDS = 300
_NO_SERVER = {20002, 20003, 20006, 20009, 20017}
"""The driver's codes for a server that does not answer, and for one that went away."""
_PASSING = _NO_SERVER | {
    *(921, 922, 927, 976, 983),  # the database recovers, is restored, or moves to the standby
    *(1205, 1222),  # a deadlock, and a lock that somebody else has
    1807,  # another database is created
    4060,  # the database cannot be opened
    5061,  # the database's options cannot be set while somebody uses it
    15434,  # a login cannot go while its session is there
    18401,  # the server is upgraded
    51000,  # another session of ours prepares the database
}


class Refused(Exception):
    """The server refuses a statement or a login. The message is the server's own, without the statement."""


class NotReady(Exception):
    """The server does not answer, or not yet as it will."""


class Open(Protocol):
    """Opens a session, as `connectors.engines.sqlserver.session.open_session` does."""

    def __call__(
        self,
        host: str,
        port: int,
        user: str,
        password: str,
        database: str,
        *,
        is_encrypted: bool,
        ca_file: str | None,
        timeout: int,
    ) -> Session: ...


@dataclass(frozen=True)
class Server:
    """A server, and how to reach it.

    is_verified  whether the roots in `ROOTS` must vouch for its certificate
    """

    host: str
    port: int
    is_verified: bool
    open: Open = open_session

    @classmethod
    def of(cls, properties: Mapping[str, str], open_: Open = open_session) -> Server:
        verified = properties["SslMode"] == "verified"
        return cls(properties["Host"], int(properties["Port"]), verified, open_)

    @contextmanager
    def session(self, user: str, password: str, database: str) -> Iterator[Session]:
        """Open a session, and close it at the end. Raises NotReady and Refused, also for what runs in it."""
        with told():
            session = self.open(
                self.host,
                self.port,
                user,
                password,
                database,
                is_encrypted=True,
                ca_file=str(ROOTS) if self.is_verified else None,
                timeout=_STATEMENT_SECONDS,
            )
            try:
                yield session
            finally:
                session.close()

    def lets_in(self, user: str, password: str, database: str) -> bool:
        """Tell whether the user can log in with this password."""
        try:
            with self.session(user, password, database):
                return True
        except Refused:
            return False


@contextmanager
def told() -> Iterator[None]:
    """Raise NotReady or Refused in the place of the driver's errors."""
    try:
        yield
    except pymssql.Error as error:
        said = told_by(error)
        # Without the error itself, which could repeat a statement.
        raise (NotReady if number_of(error) in _PASSING else Refused)(said) from None


@dataclass(frozen=True)
class Patience:
    """How to wait for a server."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def until_ready(self, action: Callable[[], Result], seconds: float) -> Result:
        """Return the result of the action. Retry it for `seconds` while the server is not ready.

        Raises the action's last exception.
        """
        began = self.clock()
        while True:
            try:
                return action()
            except NotReady as error:
                if self.clock() - began + _PAUSE_SECONDS > seconds:
                    raise
                print(f"not ready yet: {error}")
                self.sleep(_PAUSE_SECONDS)
