"""Create and run a PostgreSQL server from packaged binaries, as an ordinary user or as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psutil
import psycopg
from psycopg import sql

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.local.local_server import LocalServer, password_refused
from tributary.local.process import Command
from tributary.local.server_account import SERVER_ACCOUNT, as_server_account, environment, is_root
from tributary.local.state import write_private_file

SERVICE = "postgres"
ADMIN = "postgres"
CATALOG = "tributary_catalog"
CATALOG_ROLE = "tributary_catalog"

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_connections": "60",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # A failing statement may contain a password. The error itself is still logged.
    "log_min_error_statement": "panic",
}


class PostgresUnfit(TributaryError):
    """The PostgreSQL binaries cannot run here, or the data folder cannot be created."""


@dataclass(frozen=True)
class PostgresServer(LocalServer):
    """A server on a loopback port. `binaries` is the folder with bin/ and lib/; `folder` is for its data."""

    service: ClassVar[str] = SERVICE
    of_every_lake: ClassVar[bool] = True
    # PostgreSQL ends sessions, drains replication and writes everything to disk.
    end_signal: ClassVar[signal.Signals] = signal.SIGINT
    patience_seconds: ClassVar[float] = 30.0

    binaries: Path
    folder: Path
    log: Path
    run: Path
    port: int
    admin_password: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> Command:
        """Create the data folder if it is missing, and return the command. Raises PostgresUnfit."""
        if not (self.data / "PG_VERSION").exists():
            _create_data_folder(self)
        _remove_stale_lock(self.data / "postmaster.pid")
        settings = [argument for name, value in _SETTINGS.items() for argument in ("-c", f"{name}={value}")]
        postgres = str(self.binaries / "bin" / "postgres")
        arguments = [postgres, "-D", str(self.data), "-p", str(self.port), *settings]
        return Command(SERVICE, [*as_server_account(), *arguments], log=self.log, environment=environment())

    def answers(self) -> bool:
        """Return whether the server accepts connections. Raises ServiceFailed if it refuses the password."""
        try:
            with connect_as_admin(self):
                return True
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise password_refused("PostgreSQL", self.data) from error
            return False


def connect_as_admin(server: PostgresServer, database: str = "postgres") -> psycopg.Connection:
    """Open an autocommit connection of the superuser to the local server."""
    return psycopg.connect(
        host="127.0.0.1",
        port=server.port,
        user=ADMIN,
        password=server.admin_password,
        dbname=database,
        autocommit=True,
        connect_timeout=5,
    )


def create_database(connection: psycopg.Connection, database: str, owner: str = ADMIN) -> None:
    """Create the database if it is missing."""
    if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone() is None:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(owner))
        )


def databases_here(lake: Lake) -> tuple[str, ...]:
    """Return the databases of the sources that the local server holds."""
    return tuple(
        source.database
        for source in lake.connected_sources
        if isinstance(source, PostgresSource) and source.connection is None
    )


def create_login(connection: psycopg.Connection, role: str, password: str) -> None:
    """Create the role if it is missing, and set its password, which is hashed before it is sent."""
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is None:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    connection.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier.decode()))
    )


def _create_data_folder(server: PostgresServer) -> None:
    # initdb works in a draft folder, so a half-made database folder is never used.
    draft = server.folder / "data.draft"
    password_file = server.folder / "admin-password"
    shutil.rmtree(draft, ignore_errors=True)
    server.folder.mkdir(parents=True, exist_ok=True)
    server.folder.chmod(0o700)
    write_private_file(password_file, server.admin_password)
    if is_root():
        os.chown(server.folder, SERVER_ACCOUNT, SERVER_ACCOUNT)
        os.chown(password_file, SERVER_ACCOUNT, SERVER_ACCOUNT)
    try:
        _run_initdb(server, draft, password_file)
    finally:
        password_file.unlink(missing_ok=True)
    draft.replace(server.data)


def _run_initdb(server: PostgresServer, data: Path, password_file: Path) -> None:
    command = [
        *as_server_account(),
        *(
            str(server.binaries / "bin" / "initdb"),
            "-D",
            str(data),
            "-U",
            ADMIN,
            "--pwfile",
            str(password_file),
        ),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
    ]
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(), cwd="/"
        )
    except OSError as error:
        raise PostgresUnfit("initdb cannot run", where=command[0], found=str(error)) from error
    if result.returncode != 0:
        raise PostgresUnfit(
            "PostgreSQL could not create its data folder",
            where=str(data),
            found=(result.stderr or result.stdout).strip()[-1000:],
            remedy="Do not run tributary as root; see docs/local.md" if is_root() else None,
        )


def _remove_stale_lock(lock: Path) -> None:
    """Remove postmaster.pid if its process started later than the time in the file's third line.

    PostgreSQL itself refuses to start as long as any process has the pid.
    """
    try:
        lines = lock.read_text().splitlines()
        started, process = int(lines[2]), psutil.Process(int(lines[0]))
        if process.create_time() > started + 60:
            lock.unlink()
    except (FileNotFoundError, psutil.NoSuchProcess, IndexError, ValueError):
        return
