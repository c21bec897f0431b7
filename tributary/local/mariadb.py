"""Create and run a MariaDB server from packaged binaries, as an ordinary user or as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pymysql

from connectors.engines.binlog.sql import identifier
from tributary.contract.engines.mariadb import MariaDbSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.patterns import WILDCARDS
from tributary.local.local_server import LocalServer, password_refused
from tributary.local.process import Command
from tributary.local.server_account import SERVER_ACCOUNT, as_server_account, environment, is_root

SERVICE = "mariadb"
ADMIN = "tributary_admin"

_SYSTEM_TABLES = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "fill_help_tables.sql",
    "mariadb_sys_schema.sql",
)
"""What mariadb-install-db, a script for Perl, feeds to the server, in this order."""

_SETTINGS = {
    "bind-address": "127.0.0.1",
    # Relative to the data folder, because the path of a socket may have only 107 bytes.
    "socket": "mariadb.sock",
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-legacy-event-pos": "ON",
    "expire-logs-days": "7",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
    "max-allowed-packet": "64M",
    "innodb-buffer-pool-size": "64M",
}
_FLAGS = ("--skip-name-resolve", "--skip-ssl")

_ACCESS_DENIED = 1045


class MariaDbUnfit(TributaryError):
    """The MariaDB binaries cannot run here, or the data folder cannot be created."""


@dataclass(frozen=True)
class MariaDbServer(LocalServer):
    """A server on a loopback port.

    binaries  the folder with bin/ and share/
    folder    for its data
    """

    service: ClassVar[str] = SERVICE
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

    def arguments(self, data: Path) -> list[str]:
        """Return the server's command line, without what it listens on."""
        share = self.binaries / "share"
        return [
            *as_server_account(),
            str(self.binaries / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={self.binaries}",
            f"--datadir={data}",
            f"--lc-messages-dir={share}",
            f"--plugin-dir={share}",  # It needs a folder, even if it loads nothing from it.
        ]

    def command(self) -> Command:
        """Create the data folder if it is missing, and return the command. Raises MariaDbUnfit."""
        if not self.data.exists():
            _create_data_folder(self)
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        arguments = [*self.arguments(self.data), f"--port={self.port}", *_FLAGS, *settings]
        return Command(SERVICE, arguments, log=self.log, environment=environment())

    def answers(self) -> bool:
        """Return whether the server accepts connections. Raises ServiceFailed if it refuses the password."""
        try:
            _connect(self).close()
        except pymysql.err.OperationalError as error:
            if error.args[0] == _ACCESS_DENIED:
                raise password_refused("MariaDB", self.data) from error
            return False
        return True


def create_databases(server: MariaDbServer, lake: Lake) -> None:
    """Create the databases that the patterns of the local sources name, if they are missing."""
    with _connect(server) as admin, admin.cursor() as cursor:
        for database in databases_here(lake):
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {identifier(database)}")


def databases_here(lake: Lake) -> tuple[str, ...]:
    """Return the databases of the sources that the local server holds. A wildcard names none."""
    return tuple(
        sorted(
            {
                pattern.schema
                for source in lake.sources
                if isinstance(source, MariaDbSource) and source.connection is None
                for pattern in source.patterns.include
                if not any(wildcard in pattern.schema for wildcard in WILDCARDS)
            }
        )
    )


def _connect(server: MariaDbServer) -> pymysql.Connection:
    return pymysql.connect(
        host="127.0.0.1",
        port=server.port,
        user=ADMIN,
        password=server.admin_password,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=5,
        ssl_disabled=True,
    )


def _create_data_folder(server: MariaDbServer) -> None:
    # The server works in a draft folder, so a half-made data folder is never used.
    draft = server.folder / "data.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for folder in (server.folder, draft):
        folder.chmod(0o700)
        if is_root():
            os.chown(folder, SERVER_ACCOUNT, SERVER_ACCOUNT)
    command = [*server.arguments(draft), "--bootstrap", "--innodb-buffer-pool-size=32M"]
    try:
        result = subprocess.run(
            command,
            input=b"".join(_first_statements(server)),
            capture_output=True,
            env=environment(),
            cwd="/",
        )
    except OSError as error:
        raise MariaDbUnfit("mariadbd cannot run", where=command[0], found=str(error)) from error
    if result.returncode != 0:
        raise MariaDbUnfit(
            "MariaDB could not create its data folder",
            where=str(server.data),
            found=(result.stderr or result.stdout).decode(errors="replace").strip()[-1000:],
        )
    draft.replace(server.data)


def _first_statements(server: MariaDbServer) -> Iterator[bytes]:
    """Yield the SQL that makes the system's tables, and the one user who may log in."""
    yield b"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
    for name in _SYSTEM_TABLES:
        yield (server.binaries / "share" / name).read_bytes() + b"\n"
    # The password has only letters and digits.
    admin = f"'{ADMIN}'@'%'"
    yield (
        "FLUSH PRIVILEGES;\n"
        "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';\n"
        "FLUSH PRIVILEGES;\n"
        f"CREATE USER {admin} IDENTIFIED BY '{server.admin_password}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO {admin} WITH GRANT OPTION;\n"
    ).encode()
