"""Sessions of SQL Server, and queries in them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymssql

from connectors.engines.engine import Login, NotConnected
from tributary.contract.engines.sqlserver import SqlServerSource, SslMode

Session = pymssql.Connection
Parameters = tuple[object, ...]

DRIVER_ERRORS = (pymssql.Error,)

_ENCRYPTION: Mapping[SslMode, str] = {"disabled": "off", "required": "require", "verified": "require"}
_CONFIG = "FREETDSCONF"
_connecting = threading.Lock()


def connect(source: SqlServerSource, login: Login) -> Session:
    """Open a session in the source's database, in which each statement commits by itself.

    Raises NotConnected."""
    mode, ca_file = _encryption(source, login)
    try:
        with _trusting(ca_file):
            return pymssql.connect(
                server=login.host,
                port=str(login.port),
                user=login.user,
                password=login.password.get_secret_value(),
                database=source.database,
                charset="UTF-8",
                login_timeout=10,
                appname="tributary",
                autocommit=True,
                tds_version="7.4",
                encryption=_ENCRYPTION[mode],
                # CDC's procedures demand these, which other drivers set by default. This driver's own default
                # would close a cursor at the first commit.
                conn_properties=_OPTIONS,
            )
    except pymssql.Error as error:
        raise NotConnected(
            f"{login.host}:{login.port}, database {source.database}", told_by(error)
        ) from error


def _encryption(source: SqlServerSource, login: Login) -> tuple[SslMode, str | None]:
    """Return the mode, and the file with the certificates that must vouch for the server."""
    if login.encryption is not None:
        ca_file = login.encryption.ca_file
        return "required" if ca_file is None else "verified", ca_file
    connection = source.connection
    if connection is None:
        return "disabled", None
    return connection.ssl_mode, connection.ca_file if connection.ssl_mode == "verified" else None


def told_by(error: Exception) -> str:
    """Return the server's own message, in one line. The driver puts its own words behind it."""
    said = error.args[-1] if error.args else ""
    if isinstance(said, tuple):
        said = said[-1]
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return " ".join(text.split("DB-Lib error message")[0].split()) or type(error).__name__


def number_of(error: Exception) -> int | None:
    """Return the server's number of an error, such as 208 for an object that does not exist."""
    first = error.args[0] if error.args else None
    if isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, int) else None


def rows_of(session: Session, query: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
    """Return a query's rows, by the names of the columns."""
    with session.cursor(as_dict=True) as cursor:
        _execute(cursor, query, parameters)
        return list(cursor.fetchall())


def first_row(session: Session, query: str, parameters: Parameters = ()) -> dict[str, Any] | None:
    return next(iter(rows_of(session, query, parameters)), None)


def execute(session: Session, statement: str, parameters: Parameters = ()) -> None:
    """Run a statement, or a batch of statements, to its end."""
    with session.cursor() as cursor:
        _execute(cursor, statement, parameters)
        # An error of a later statement comes with the results of its predecessors.
        while cursor.nextset():
            pass


def _execute(cursor: Any, statement: str, parameters: Parameters) -> None:
    # Without parameters, the driver takes a percent sign as it is.
    if parameters:
        cursor.execute(statement, parameters)
    else:
        cursor.execute(statement)


@contextmanager
def _trusting(ca_file: str | None) -> Iterator[None]:
    """Let the driver verify the server's certificate while it connects. It reads this from a file only."""
    if ca_file is None:
        yield
        return
    config = f"[global]\nca file = {ca_file}\ncheck certificate hostname = yes\n"
    with _connecting, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "freetds.conf"
        file.write_text(config)
        before = os.environ.get(_CONFIG)
        os.environ[_CONFIG] = str(file)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_CONFIG]
            else:
                os.environ[_CONFIG] = before


_OPTIONS = (
    "SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;"
    "SET NUMERIC_ROUNDABORT OFF;"
    "SET TEXTSIZE 2147483647;"
)
