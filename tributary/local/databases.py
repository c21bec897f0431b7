"""Knows where each source's database is, here or where the lake file says, and how it is made ready."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from connectors.deployment import DatabaseAccess, DirectorySecret, access_by_lake_file, replication_user
from connectors.engines.postgres.preflight import (
    PostgresNotReady,
    check_replication,
    check_server,
    check_tables,
)
from connectors.engines.postgres.preparation import apply_postgres_setup, setup_script, slot_removal
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, Source
from tributary.local.postgres import ADMIN
from tributary.local.process import POLL_SECONDS
from tributary.local.state import LocalSettings, StateFolder

HOST = "127.0.0.1"

_SLOT_SECONDS = 90.0
"""How long the server may take to notice that a slot's reader has gone: wal_sender_timeout is 60 seconds."""


class DatabaseUnreachable(TributaryError):
    """A source's database does not let Tributary in."""


class SlotInUse(TributaryError):
    """A replication slot cannot be dropped while somebody reads from it."""


class PasswordMissing(TributaryError):
    """An environment variable in which the lake file expects a password holds none."""


@dataclass(frozen=True)
class SourceDatabase:
    """The database of one source, as the lake file and the state folder know it."""

    lake: Lake
    source: Source
    state: StateFolder
    settings: LocalSettings

    @property
    def is_prepared_by_hand(self) -> bool:
        """Whether the lake file names no administrator, so that a person has to prepare the database."""
        return self.source.connection is not None and self.source.connection.admin_user is None

    @property
    def script(self) -> Path:
        """Where the SQL is written that a person has to run."""
        return self.state.path / f"prepare-{self.source.name}.sql"

    @property
    def secret_name(self) -> str:
        """The name under which the Connect worker finds the password that Debezium logs in with."""
        return f"{self.source.name}-replication"

    @property
    def replication_password(self) -> SecretStr:
        """The user's own, else one that this state folder has made up. Raises PasswordMissing."""
        connection = self.source.connection
        if connection is None or connection.password_env is None:
            return self.settings.secrets.replication_password(self.source.name)
        return self._read_password("password_env", connection.password_env)

    def debezium_access(self, secrets_folder: Path) -> DatabaseAccess:
        """How Debezium reaches the database."""
        password = DirectorySecret(str(secrets_folder), self.secret_name)
        if self.source.connection is not None:
            return access_by_lake_file(self.lake, self.source, password)
        user = replication_user(self.lake, self.source)
        return DatabaseAccess(HOST, self.settings.ports.postgres, user, password, sslmode="disable")

    def connect(self) -> psycopg.Connection:
        """An autocommit connection of the administrator, else of the replication user.

        Raises DatabaseUnreachable and PasswordMissing.
        """
        connection = self.source.connection
        if connection is None:
            return self._open(ADMIN, self.settings.secrets.postgres_admin)
        if connection.admin_user is None or connection.admin_password_env is None:
            return self.connect_for_replication()
        password = self._read_password("admin_password_env", connection.admin_password_env)
        return self._open(connection.admin_user, password)

    def connect_for_replication(self) -> psycopg.Connection:
        """An autocommit connection of the replication user. Raises as `connect` does."""
        return self._open(replication_user(self.lake, self.source), self.replication_password)

    def _open(self, user: str, password: SecretStr) -> psycopg.Connection:
        where = self.source.connection
        conninfo = make_conninfo(
            host=HOST if where is None else where.host,
            port=self.settings.ports.postgres if where is None else where.port,
            dbname=self.source.database,
            user=user,
            password=password.get_secret_value(),
            sslmode="disable" if where is None else where.sslmode,
            sslrootcert=None if where is None else where.sslrootcert,
            connect_timeout=10,
            application_name="tributary",
        )
        try:
            return psycopg.connect(conninfo, autocommit=True)
        except psycopg.Error as error:
            raise DatabaseUnreachable(
                "no connection to the database",
                where=f"[source.{self.source.name}], database {self.source.database} as {user}",
                found=" ".join(str(error).split()) or type(error).__name__,
                remedy=self._remedy("Check host, port, database, user, password and sslmode"),
            ) from error

    def _remedy(self, advice: str) -> str:
        by_hand = f"; an administrator prepares the database with: psql -f {self.script}"
        return advice + (by_hand if self.is_prepared_by_hand else "")

    def _read_password(self, entry: str, variable: str) -> SecretStr:
        password = os.environ.get(variable)
        if password:
            return SecretStr(password)
        raise PasswordMissing(
            f"the environment variable {variable} holds no password",
            where=f"[source.{self.source.name}.connection].{entry}",
            found="no such variable" if password is None else "an empty variable",
            remedy=f"Set it: export {variable}=…",
        )


def prepare_database(database: SourceDatabase) -> tuple[str, ...]:
    """Makes the database ready for Debezium and returns warnings. May be run again at any time.

    Where the lake file names no administrator, nothing is changed: the SQL is written to `database.script`.
    Raises DatabaseUnreachable, PasswordMissing, PostgresNotReady and PostgresSetupFailed.
    """
    if database.is_prepared_by_hand:
        return _check_prepared(database)
    lake, source = database.lake, database.source
    with database.connect() as admin:
        check_server(admin, lake, source)
        findings = check_tables(admin, lake, source)
        password = database.replication_password.get_secret_value()
        warnings = findings.warnings + apply_postgres_setup(admin, lake, source, password)
    with database.connect_for_replication() as replication:
        check_replication(replication, lake, source)
    return warnings


def drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """Drops the replication slot, if it is there. Raises SlotInUse where somebody goes on reading from it."""
    deadline = time.monotonic() + _SLOT_SECONDS
    while True:
        connection.execute(slot_removal(slot).encode())
        reader = connection.execute(
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", [slot]
        ).fetchone()
        if reader is None:
            return
        if time.monotonic() > deadline:
            raise SlotInUse(
                "the replication slot cannot be dropped",
                where=slot,
                found=f"the server's process {reader[0]} reads from it for somebody",
                remedy=f"End what reads from it: SELECT pg_terminate_backend({reader[0]});",
            )
        time.sleep(POLL_SECONDS)


def _check_prepared(database: SourceDatabase) -> tuple[str, ...]:
    lake, source = database.lake, database.source
    database.script.write_text(setup_script(lake, source))
    with database.connect_for_replication() as replication:
        check_server(replication, lake, source)
        findings = check_tables(replication, lake, source)
        try:
            check_replication(replication, lake, source)
        except PostgresNotReady as error:
            remedy = f"Let an administrator of the database run: psql -f {database.script}"
            raise PostgresNotReady(
                error.what, where=error.where, found=error.found, expected=error.expected, remedy=remedy
            ) from error
    return findings.warnings
