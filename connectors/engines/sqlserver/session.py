"""Sessions of SQL Server, and queries in them.

A function on AWS runs with this module too, so it imports nothing of the project.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymssql

Session = pymssql.Connection
Parameters = tuple[object, ...]

DRIVER_ERRORS = (pymssql.Error,)

_CONFIG = "FREETDSCONF"
_connecting = threading.Lock()


def open_session(
    host: str,
    port: int,
    user: str,
    password: str,
    database: str,
    *,
    is_encrypted: bool,
    ca_file: str | None = None,
    timeout: int = 0,
) -> Session:
    """Open a session in which each statement commits by itself. Raises pymssql.Error.

    ca_file  the certificates that must vouch for the server; None: nobody verifies its certificate
    timeout  seconds for a statement; 0: no limit
    """
    with _trusting(ca_file):
        return pymssql.connect(
            server=host,
            port=str(port),
            user=user,
            password=password,
            database=database,
            charset="UTF-8",
            login_timeout=10,
            timeout=timeout,
            appname="tributary",
            autocommit=True,
            tds_version="7.4",
            encryption="require" if is_encrypted else "off",
            # CDC's procedures demand these, which other drivers set by default. This driver's own default
            # would close a cursor at the first commit.
            conn_properties=_OPTIONS,
        )


def limit_statements(session: Session, seconds: int) -> None:
    """Limit how long a later statement may run. The driver limits all sessions of the process."""
    session._conn.query_timeout = seconds


def told_by(error: Exception) -> str:
    """Return the server's own message, in one line, else the driver's, which follows it."""
    said = error.args[-1] if error.args else ""
    if isinstance(said, tuple):
        said = said[-1]
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    servers, _, drivers = text.partition("DB-Lib error message")
    words = servers.split() or drivers.partition(":")[2].split()
    return " ".join(words) or type(error).__name__


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
