"""Reach a SQL Server, and tell what it refuses from what only takes time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import pymssql

from connectors.engines.sqlserver.session import (
    Session,
    limit_statements,
    number_of,
    open_session,
    told_by,
)

Result = TypeVar("Result")

ROOTS = Path(__file__).with_name("rds.pem")
"""The roots of the certificates of Amazon's databases. The deployment puts them here."""

_PAUSE_SECONDS = 5.0
_STATEMENT_SECONDS = 300
_LOGIN_SECONDS = 10
"""The driver's limit for a login, in `connectors.engines.sqlserver.session`."""
_LOGIN_FAILED = 18456
_ROTATION_SECONDS = 30.0
"""While a secret rotates, the server already has the new password, and the secret still has the old one."""
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
    """The server does not answer, or not yet as it will.

    seconds  how long this can last, from its first time on, until it is a failure
    """

    def __init__(self, message: str, seconds: float = math.inf) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class Deadline:
    """The end of a request. What begins before it must end before it, too."""

    at: float = math.inf
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(clock() + seconds, clock)

    def seconds_for(self, most: int, least: int = 1) -> int:
        """Return how long a step may take: `most`, or what is left. Raises NotReady if that is too little."""
        left = self.at - self.clock()
        if left < least:
            raise NotReady("no time is left for it")
        return int(min(most, left))


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
    deadline: Deadline = field(default_factory=Deadline)

    @classmethod
    def of(cls, properties: Mapping[str, str], open_: Open, deadline: Deadline) -> Server:
        verified = properties["SslMode"] == "verified"
        return cls(properties["Host"], int(properties["Port"]), verified, open_, deadline)

    @contextmanager
    def session(self, user: str, password: str, database: str, *, rotates: bool = False) -> Iterator[Session]:
        """Open a session, and close it at the end. Raises NotReady and Refused, also for what runs in it.

        rotates  whether the password rotates, so that a refused login can pass
        """
        with told(rotates=rotates):
            timeout = self.deadline.seconds_for(_STATEMENT_SECONDS, _LOGIN_SECONDS)
            session = self.open(
                self.host,
                self.port,
                user,
                password,
                database,
                is_encrypted=True,
                ca_file=str(ROOTS) if self.is_verified else None,
                timeout=timeout,
            )
            try:
                yield cast(Session, _Limited(session, self.deadline))
            finally:
                session.close()

    def lets_in(self, user: str, password: str, database: str) -> bool:
        """Tell whether the user can log in with this password."""
        try:
            with self.session(user, password, database):
                return True
        except Refused:
            return False


@dataclass(frozen=True)
class _Limited:
    """A session whose statements end before the deadline."""

    session: Session
    deadline: Deadline

    def cursor(self, **options: Any) -> Any:
        limit_statements(self.session, self.deadline.seconds_for(_STATEMENT_SECONDS))
        return self.session.cursor(**options)


@contextmanager
def told(*, rotates: bool = False) -> Iterator[None]:
    """Raise NotReady or Refused in the place of the driver's errors."""
    try:
        yield
    except pymssql.Error as error:
        said = told_by(error)
        # Without the error itself, which could repeat a statement.
        if rotates and number_of(error) == _LOGIN_FAILED:
            raise NotReady(said, _ROTATION_SECONDS) from None
        raise (NotReady if number_of(error) in _PASSING else Refused)(said) from None


@dataclass(frozen=True)
class Patience:
    """How to wait for a server."""

    sleep: Callable[[float], None] = time.sleep
    deadline: Deadline = field(default_factory=Deadline)

    def until_ready(self, action: Callable[[], Result], seconds: float = math.inf) -> Result:
        """Return the result of the action. Retry it for `seconds` while the server is not ready.

        Raises the action's last exception.
        """
        now = self.deadline.clock
        end = min(now() + seconds, self.deadline.at)
        limit, since = math.inf, now()
        while True:
            try:
                return action()
            except NotReady as error:
                if error.seconds != limit:
                    limit, since = error.seconds, now()
                if now() + _PAUSE_SECONDS > min(end, since + limit):
                    raise
                print(f"not ready yet: {error}")
                self.sleep(_PAUSE_SECONDS)
