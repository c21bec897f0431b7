"""How a login of a source opens a session in the source's database."""

from __future__ import annotations

import pymssql

from connectors.engines.engine import Login, NotConnected
from connectors.engines.sqlserver.session import Session, open_session, told_by
from tributary.contract.encrypted import SslMode
from tributary.contract.engines.sqlserver import SqlServerSource


def connect(source: SqlServerSource, login: Login) -> Session:
    """Open a session in the source's database, in which each statement commits by itself.

    Raises NotConnected."""
    mode, ca_file = _encryption(source, login)
    try:
        return open_session(
            login.host,
            login.port,
            login.user,
            login.password.get_secret_value(),
            source.database,
            is_encrypted=mode != "disabled",
            ca_file=ca_file,
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
