"""The SQL that prepares a MySQL or MariaDB server for Debezium: a user, its rights, and two tables."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql

from connectors.engines.binlog.names import HEARTBEAT_TABLE, OWN_DATABASE, connector_user, signal_table
from connectors.engines.binlog.session import Session, execute, told_by
from connectors.engines.binlog.sql import database_pattern, identifier, literal
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp

HEARTBEAT = identifier(OWN_DATABASE, HEARTBEAT_TABLE)


class ServerSetupFailed(TributaryError):
    """The SQL that prepares the server failed."""


def signals_of(lake: Lake, source: BinlogSource) -> str:
    """Return the source's signal table as SQL names it."""
    return identifier(OWN_DATABASE, signal_table(lake, source))


def heartbeat_statement(lake: Lake, source: BinlogSource) -> str:
    """Return a statement that writes to the log, which Debezium then reads up to there."""
    return (
        f"INSERT INTO {HEARTBEAT} (lake, source, beaten_at) "
        f"VALUES ({literal(lake.name)}, {literal(source.name)}, now(6)) "
        "ON DUPLICATE KEY UPDATE beaten_at = now(6)"
    )


def setup_script(lake: Lake, source: BinlogSource) -> str:
    """Return the SQL for an administrator, if Tributary has no administrator's password."""
    statements = "\n".join(f"{statement};" for statement in setup_statements(lake, source))
    return (
        "-- Prepares the server for Debezium. It may run any number of times.\n"
        f"{statements}\n"
        "-- Then set the user's password:\n"
        f"-- ALTER USER {_user(lake, source)} IDENTIFIED BY '…' ACCOUNT UNLOCK;\n"
    )


def setup_statements(lake: Lake, source: BinlogSource) -> tuple[str, ...]:
    """Return the SQL that prepares the server. It sets no password.

    The user may read all tables of the databases that the patterns name, because Debezium reads the
    definitions of all of them.
    """
    user, signals = _user(lake, source), signals_of(lake, source)
    return (
        # Nobody can log in before the user has a password.
        f"CREATE USER IF NOT EXISTS {user} ACCOUNT LOCK",
        f"CREATE DATABASE IF NOT EXISTS {identifier(OWN_DATABASE)} CHARACTER SET utf8mb4",
        f"CREATE TABLE IF NOT EXISTS {HEARTBEAT} ("
        "lake varchar(100), source varchar(100), beaten_at datetime(6) NOT NULL, PRIMARY KEY (lake, source)"
        ") CHARACTER SET ascii",
        f"CREATE TABLE IF NOT EXISTS {signals} ("
        "id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data text"
        ") CHARACTER SET utf8mb4",
        # RELOAD and LOCK TABLES: for the moment in which a snapshot reads the definitions of the tables.
        # PROCESS: to see which tables were exchanged, emptied or rewritten without an event.
        f"GRANT RELOAD, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        *_rights(source, user),
        f"GRANT SELECT, INSERT, UPDATE ON {HEARTBEAT} TO {user}",
        f"GRANT SELECT, INSERT, DELETE ON {signals} TO {user}",
        # Where FLUSH TABLES WITH READ LOCK is refused, as on Aurora, a snapshot locks each table instead. It
        # also locks that of the signals.
        f"GRANT LOCK TABLES ON {identifier(OWN_DATABASE)}.* TO {user}",
    )


def removal_statements(lake: Lake, source: BinlogSource) -> tuple[str, ...]:
    """Return the SQL that removes what belongs to the source alone. The last statement removes the user."""
    return (
        f"DROP TABLE IF EXISTS {signals_of(lake, source)}",
        f"DELETE FROM {HEARTBEAT} WHERE lake = {literal(lake.name)} AND source = {literal(source.name)}",
        f"DROP USER IF EXISTS {_user(lake, source)}",
    )


def password_statement(lake: Lake, source: BinlogSource, password: str) -> str:
    """Return the statement that gives Debezium's user a password. The server's logs show it as <secret>."""
    return f"ALTER USER {_user(lake, source)} IDENTIFIED BY {literal(password)}"


def apply_setup(admin: Session, lake: Lake, source: BinlogSource, password: str) -> None:
    """Prepare the server, and give Debezium's user this password. Raises ServerSetupFailed."""
    user = _user(lake, source)
    try:
        for statement in setup_statements(lake, source):
            execute(admin, statement)
        # The driver writes the password into the statement. The server's logs show it as <secret>.
        execute(admin, f"ALTER USER {user.replace('%', '%%')} IDENTIFIED BY %s ACCOUNT UNLOCK", (password,))
    except pymysql.Error as error:
        raise ServerSetupFailed(
            "the server cannot be prepared",
            where=f"source {source.name}",
            found=told_by(error),
            remedy=[
                "Name an admin_user that may create users and databases and grant rights. Without an "
                "admin_user, the start writes the SQL to a file, for an administrator to run.",
                BringUp(),
            ],
        ) from error


def forget(admin: Session, lake: Lake, source: BinlogSource) -> None:
    """Remove the requests that a connector would take up again. The log holds nothing for a connector."""
    try:
        execute(admin, f"DELETE FROM {signals_of(lake, source)}")
    except pymysql.err.ProgrammingError as error:
        if error.args[0] != _NO_SUCH_TABLE:
            raise
    except pymysql.err.OperationalError as error:
        if error.args[0] != _NO_SUCH_DATABASE:
            raise


_NO_SUCH_TABLE = 1146
_NO_SUCH_DATABASE = 1049


def _rights(source: BinlogSource, user: str) -> Iterator[str]:
    for database in sorted({database_pattern(pattern.schema) for pattern in source.patterns.include}):
        yield f"GRANT SELECT, LOCK TABLES ON {database}.* TO {user}"


def _user(lake: Lake, source: BinlogSource) -> str:
    return user_at_any_host(connector_user(lake, source))


def user_at_any_host(user: str) -> str:
    """Return the user as SQL names it: `'tributary_shop__web'@'%'`."""
    return f"{literal(user)}@'%'"
