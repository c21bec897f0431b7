"""Sessions of MySQL and MariaDB, and queries in them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pymysql
from pymysql.cursors import DictCursor

from connectors.engines.engine import Encryption, Login, NotConnected
from tributary.contract.engines.binlog import BinlogSource

if TYPE_CHECKING:
    Session = pymysql.connections.Connection[Any]
else:  # At run time, the class is not generic.
    Session = pymysql.connections.Connection

Parameters = tuple[object, ...]


def connect(source: BinlogSource, login: Login) -> Session:
    """Open a session in which each statement commits by itself, with times in UTC. Raises NotConnected."""
    encryption = login.encryption
    if encryption is None and source.connection is not None and source.connection.ssl_mode == "required":
        encryption = Encryption(None)
    try:
        return pymysql.connect(
            host=login.host,
            port=login.port,
            user=login.user,
            password=login.password.get_secret_value(),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=10,
            ssl=None if encryption is None else _context(encryption.ca_file),
            ssl_disabled=encryption is None,
            # The texts that the functions here send are the same in all modes.
            init_command="SET SESSION time_zone = '+00:00', sql_mode = ''",
            program_name="tributary",
        )
    except (pymysql.Error, RuntimeError) as error:  # RuntimeError: a package for the login is missing.
        raise NotConnected(f"{login.host}:{login.port}", told_by(error)) from error


def told_by(error: BaseException) -> str:
    """Return the server's message in one line."""
    said = error.args[1] if isinstance(error, pymysql.Error) and len(error.args) > 1 else error
    return " ".join(str(said).split()) or type(error).__name__


def rows_of(session: Session, query: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
    """Return a query's rows, by the names of the columns as the query writes them."""
    with session.cursor(DictCursor) as cursor:
        cursor.execute(query, parameters or None)
        return list(cursor.fetchall())


def first_row(session: Session, query: str, parameters: Parameters = ()) -> dict[str, Any] | None:
    return next(iter(rows_of(session, query, parameters)), None)


def execute(session: Session, statement: str, parameters: Parameters = ()) -> None:
    with session.cursor() as cursor:
        cursor.execute(statement, parameters or None)


def _context(ca_file: str | None) -> ssl.SSLContext:
    """Return encryption by which these certificates vouch for the server and its name.

    None: the certificate is not checked, as the mode "required" has it."""
    context = ssl.create_default_context(cafile=ca_file)
    if ca_file is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
