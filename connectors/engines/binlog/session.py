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
    encryption = _encryption(source, login)
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
    # RuntimeError: a package for the login is missing. OSError: the file with the certificates.
    except (pymysql.Error, RuntimeError, OSError) as error:
        found = _told_of_certificate(error, encryption) or told_by(error)
        raise NotConnected(f"{login.host}:{login.port}", found) from error


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


def _encryption(source: BinlogSource, login: Login) -> Encryption | None:
    """Return the login's own encryption, else that of the lake file. None: no encryption."""
    if login.encryption is not None:
        return login.encryption
    connection = source.connection
    if connection is None or connection.ssl_mode == "disabled":
        return None
    return Encryption(connection.ca_file if connection.ssl_mode == "verified" else None)


def _told_of_certificate(error: BaseException, encryption: Encryption | None) -> str | None:
    """Return what is wrong with the server's certificate, or with the file that has to vouch for it."""
    if encryption is None or encryption.ca_file is None:
        return None
    cause = getattr(error, "original_exception", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificates in {encryption.ca_file} do not vouch for it: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and isinstance(error, ssl.SSLError):
        return f"{encryption.ca_file} holds no certificates in PEM"
    if isinstance(error, OSError) and not isinstance(error, pymysql.Error):
        return f"{encryption.ca_file} cannot be read: {error.strerror}"
    return None


def _context(ca_file: str | None) -> ssl.SSLContext:
    """Return encryption by which these certificates vouch for the server and its name.

    None: the certificate is not checked, as the mode "required" has it."""
    context = ssl.create_default_context(cafile=ca_file)
    if ca_file is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
