"""The database of each source, on this machine or where the lake file says, and how to prepare it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from connectors.deployment import DatabaseAccess, DirectorySecret
from connectors.engines.engine import Checked, DatabaseNotReady, Login, NotConnected
from connectors.engines.registry import AnyEngine, engine_of
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import remedies_of
from tributary.contract.source import Source
from tributary.local.engine_servers import server_of
from tributary.local.state import LocalSettings, StateFolder


class DatabaseUnreachable(TributaryError):
    """A source's database does not let Tributary log in."""


class PasswordMissing(TributaryError):
    """An environment variable that must hold a password is empty or missing."""


@dataclass(frozen=True)
class SourceDatabase:
    """The database of one source, according to the lake file and the state folder."""

    lake: Lake
    source: Source
    state: StateFolder
    settings: LocalSettings

    @property
    def engine(self) -> AnyEngine:
        return engine_of(self.source)

    @property
    def is_prepared_by_hand(self) -> bool:
        """Tell whether a person must prepare the database, because the lake file names no administrator."""
        return self.source.connection is not None and self.source.connection.admin_user is None

    @property
    def script(self) -> Path:
        """The file for the SQL that a person must run."""
        return self.state.path / f"prepare-{self.source.name}.sql"

    @property
    def secret_name(self) -> str:
        """The name under which the Connect worker finds Debezium's password."""
        return f"{self.source.name}-replication"

    @property
    def replication_password(self) -> SecretStr:
        """The password in the environment, else the one of this state folder. Raises PasswordMissing."""
        connection = self.source.connection
        if connection is None or connection.password_env is None:
            return self.settings.secrets.replication_password(self.source.name)
        return self._read_password("password_env", connection.password_env)

    def debezium_access(self, secrets_folder: Path) -> DatabaseAccess:
        """Return how Debezium reaches the database. Raises NoServerHere."""
        password = DirectorySecret(str(secrets_folder), self.secret_name)
        host, port = self._address
        return self.engine.access(self.lake, self.source, host, port, password)

    def connect(self) -> Any:
        """Open a session of the engine as the administrator, else as the replication user.

        Raises DatabaseUnreachable, PasswordMissing and NoServerHere.
        """
        connection = self.source.connection
        if connection is None:
            return self._open(server_of(self.source).admin(self.settings))
        if connection.admin_user is None or connection.admin_password_env is None:
            return self.connect_for_replication()
        password = self._read_password("admin_password_env", connection.admin_password_env)
        return self._open(Login(connection.host, connection.port, connection.admin_user, password))

    def connect_for_replication(self) -> Any:
        """Open a session of the engine as the replication user. Raises the errors of `connect`."""
        user = self.engine.user(self.lake, self.source)
        return self._open(Login(*self._address, user, self.replication_password))

    @property
    def _address(self) -> tuple[str, int]:
        connection = self.source.connection
        if connection is not None:
            return connection.host, connection.port
        here = server_of(self.source).admin(self.settings)
        return here.host, here.port

    def _open(self, login: Login) -> Any:
        try:
            return self.engine.connect(self.source, login)
        except NotConnected as error:
            raise DatabaseUnreachable(
                "no connection to the database",
                where=f"[source.{self.source.name}], {error.to} as {login.user}",
                found=error.found,
                remedy=self._remedy(f"Check {self.engine.connection_keys}"),
            ) from error

    def _remedy(self, advice: str) -> str:
        command = self.engine.script_command(self.script)
        by_hand = f"; an administrator prepares the database with: {command}"
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


def prepare_database(database: SourceDatabase) -> Checked:
    """Prepare the database for Debezium, and return what was found. It may run any number of times.

    A table that cannot be taken is among the findings, and is neither published nor made readable. If the
    lake file names no administrator, only write the SQL to `database.script`. Raises DatabaseUnreachable,
    PasswordMissing, NoServerHere, DatabaseNotReady and the engine's own errors.
    """
    if database.is_prepared_by_hand:
        return _check_prepared(database)
    engine, lake, source = database.engine, database.lake, database.source
    with database.connect() as admin:
        found = engine.check(admin, lake, source)
        password = database.replication_password.get_secret_value()
        warnings = engine.prepare(admin, lake, source, password, found.untaken)
    with database.connect_for_replication() as replication:
        engine.check_prepared(replication, lake, source, found.untaken)
    return replace(found, warnings=(*found.warnings, *warnings))


def _check_prepared(database: SourceDatabase) -> Checked:
    engine, lake, source = database.engine, database.lake, database.source
    # Without a user to log in as, nothing is known of the tables yet.
    database.script.write_text(engine.script(lake, source, ()))
    with database.connect_for_replication() as replication:
        found = engine.check(replication, lake, source)
        database.script.write_text(engine.script(lake, source, found.untaken))
        try:
            engine.check_prepared(replication, lake, source, found.untaken)
        except DatabaseNotReady as error:
            command = engine.script_command(database.script)
            error.remedies = remedies_of(f"Let an administrator of the database run: {command}")
            raise
    return found
