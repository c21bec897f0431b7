"""Log in to a database with a password, and change a user's password, with the driver of each engine.

No error repeats a statement, because it holds a password.
"""

from __future__ import annotations

import re
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stacks.functions.bootstrap.scram import verifier

PASSWORD = "<password>"
"""Stands for the password in the statement that changes it."""

ROOTS = Path(__file__).with_name("rds.pem")
"""The roots of the certificates of Amazon's databases. The deployment puts them here."""

_LOGIN_SECONDS = 10
_STATEMENT_SECONDS = 30
_PLAIN = re.compile(r"[A-Za-z0-9]+")


class LoginRefused(Exception):
    """The server does not accept the user's password."""


class NotReached(Exception):
    """The server does not answer, or lets nobody in at present."""


class StatementRefused(Exception):
    """The server refuses to change the password."""


class UnfitPassword(Exception):
    """The password has characters that would need escapes."""


@dataclass(frozen=True)
class Address:
    """Where a database is.

    engine       as the lake file calls it
    database     to log in to; empty: none
    is_verified  whether the roots in `ROOTS` must vouch for the server
    """

    engine: str
    host: str
    port: int
    database: str
    is_verified: bool


class Session(Protocol):
    """A session of a user who has logged in."""

    def run(self, statement: str) -> None:
        """Run a statement. Raises StatementRefused and NotReached."""

    def close(self) -> None: ...


Open = Callable[[Address, str, str], Session]
"""Logs in with a user and a password. Raises LoginRefused and NotReached."""


def lets_in(open_: Open, address: Address, user: str, password: str) -> bool:
    """Tell whether the user can log in with this password. Raises NotReached."""
    try:
        open_(address, user, password).close()
    except LoginRefused:
        return False
    return True


def change_password(session: Session, engine: str, statement: str, password: str) -> None:
    """Change a password with the statement that holds PASSWORD in its place.

    Raises StatementRefused, NotReached and UnfitPassword.
    """
    if _PLAIN.fullmatch(password) is None:
        raise UnfitPassword("the password in the secret has characters other than letters and digits")
    sent: Callable[[str], str] = _SENT.get(engine, str)
    session.run(statement.replace(PASSWORD, sent(password)))


def open_session(address: Address, user: str, password: str) -> Session:
    """Log in with the driver of the engine. Raises LoginRefused and NotReached."""
    return _ENGINES[address.engine](address, user, password)


@dataclass(frozen=True)
class _Session:
    """A session, and how the driver runs a statement and says why it failed."""

    execute: Callable[[str], object]
    end: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    code: Callable[[Exception], object]

    def run(self, statement: str) -> None:
        try:
            self.execute(statement)
        except self.errors as error:
            raise StatementRefused(f"the server refuses another password: error {self.code(error)}") from None
        except OSError as error:
            raise NotReached(f"the server went away: {error}") from None

    def close(self) -> None:
        self.end()


def _open_postgres(address: Address, user: str, password: str) -> Session:
    from pg8000.exceptions import DatabaseError, InterfaceError
    from pg8000.native import Connection

    def code(error: Exception) -> object:
        found = error.args[0] if error.args else None
        return found.get("C") if isinstance(found, dict) else None

    try:
        connection = Connection(
            user,
            host=address.host,
            port=address.port,
            database=address.database,
            password=password,
            ssl_context=_tls(address),
            timeout=_LOGIN_SECONDS,
        )
    except DatabaseError as error:
        raise _no_login(code(error), "28P01", address, user) from None
    except (InterfaceError, OSError) as error:
        raise NotReached(f"{_place(address)}: {error.__cause__ or error}") from None
    return _Session(connection.run, connection.close, (DatabaseError, InterfaceError), code)


def _open_mysql(address: Address, user: str, password: str) -> Session:
    import pymysql

    try:
        connection = pymysql.connect(
            host=address.host,
            port=address.port,
            user=user,
            password=password,
            database=address.database or None,
            ssl=_tls(address),
            connect_timeout=_LOGIN_SECONDS,
            read_timeout=_STATEMENT_SECONDS,
            write_timeout=_STATEMENT_SECONDS,
            autocommit=True,
        )
    except pymysql.Error as error:
        raise _no_login(_first(error), 1045, address, user) from None
    except OSError as error:
        raise NotReached(f"{_place(address)}: {error}") from None

    def execute(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return _Session(execute, connection.close, (pymysql.Error,), _first)


def _open_sqlserver(address: Address, user: str, password: str) -> Session:
    import pymssql

    from connectors.engines.sqlserver import session as driver

    try:
        connection = driver.open_session(
            address.host,
            address.port,
            user,
            password,
            address.database,
            is_encrypted=True,
            ca_file=str(ROOTS) if address.is_verified else None,
            timeout=_STATEMENT_SECONDS,
        )
    except pymssql.Error as error:
        raise _no_login(driver.number_of(error), 18456, address, user) from None
    return _Session(
        lambda statement: driver.execute(connection, statement),
        connection.close,
        (pymssql.Error,),
        driver.number_of,
    )


_ENGINES: Mapping[str, Open] = {
    "postgres": _open_postgres,
    "mysql": _open_mysql,
    "sqlserver": _open_sqlserver,
}


# Only the verifier reaches PostgreSQL, and perhaps its log.
_SENT: Mapping[str, Callable[[str], str]] = {
    "postgres": lambda password: verifier(password, secrets.token_bytes(16))
}


def _no_login(code: object, of_password: object, address: Address, user: str) -> Exception:
    """Return the error for a failed login. `of_password` is the engine's code for a wrong password."""
    if code == of_password:
        return LoginRefused(f"{_place(address)} refuses the password of {user}")
    return NotReached(f"{_place(address)} does not let {user} in: error {code}")


def _place(address: Address) -> str:
    return f"{address.host}:{address.port}"


def _first(error: Exception) -> Any:
    return error.args[0] if error.args else None


def _tls(address: Address) -> ssl.SSLContext | None:
    """Return encryption, by which Amazon's roots vouch for the server and its name if they are known."""
    if address.is_verified:
        return ssl.create_default_context(cafile=str(ROOTS))
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
