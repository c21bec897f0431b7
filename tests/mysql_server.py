"""A real MySQL server for tests, if the machine has one. Tributary itself starts none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import ClassVar

import pymysql
import pytest

from tests.ports import free_port
from tributary.local.local_server import LocalServer
from tributary.local.process import Command
from tributary.local.server_account import SERVER_ACCOUNT, as_server_account, environment, is_root

ADMIN = "tributary_admin"
FOLDER = "TRIBUTARY_TESTS_MYSQL"
"""The environment variable that names the folder of `mysqld`."""

_USUAL_FOLDERS = ("/usr/sbin", "/usr/local/mysql/bin", "/usr/local/bin", "/opt/homebrew/opt/mysql/bin")
_SETTINGS = {
    "bind-address": "127.0.0.1",
    # Relative to the data folder, because the path of a socket may have only 107 bytes.
    "socket": "mysql.sock",
    "pid-file": "mysql.pid",
    "mysqlx": "OFF",
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-expire-logs-seconds": "604800",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
    "max-allowed-packet": "64M",
    "innodb-buffer-pool-size": "64M",
    "performance-schema": "OFF",
}


@dataclass(frozen=True)
class MySqlServer(LocalServer):
    """A server on a loopback port.

    binary    mysqld
    folder    for its data
    settings  besides those that all servers here have
    """

    service: ClassVar[str] = "mysql"
    patience_seconds: ClassVar[float] = 30.0

    binary: Path
    folder: Path
    log: Path
    run: Path
    port: int
    admin_password: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> Command:
        """Create the data folder if it is missing, and return the command."""
        arguments = [
            *(*as_server_account(), str(self.binary), "--no-defaults", f"--datadir={self.data}"),
            "--secure-file-priv=NULL",  # The default is a folder that only a package's installation makes.
        ]
        if not self.data.exists():
            self._create_data_folder(arguments)
        settings = [f"--{name}={value}" for name, value in {**_SETTINGS, **self.settings}.items()]
        listening = [f"--port={self.port}", f"--init-file={self.folder / 'first.sql'}"]
        return Command(self.service, [*arguments, *listening, *settings], self.log, environment())

    def answers(self) -> bool:
        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def connect(self) -> pymysql.Connection:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=ADMIN,
            password=self.admin_password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=5,
        )

    def _create_data_folder(self, arguments: list[str]) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "first.sql").write_text(
            f"CREATE USER IF NOT EXISTS '{ADMIN}'@'%' IDENTIFIED BY '{self.admin_password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{ADMIN}'@'%' WITH GRANT OPTION;\n"
        )
        if is_root():
            os.chown(self.folder, SERVER_ACCOUNT, SERVER_ACCOUNT)
        subprocess.run(
            [*arguments, "--initialize-insecure"], check=True, capture_output=True, env=environment(), cwd="/"
        )


@contextmanager
def running_mysql(folder: Path, admin_password: str | None = None, **settings: str) -> Iterator[MySqlServer]:
    """Run a server with its data below this folder, or skip the test if the machine has no MySQL."""
    server = MySqlServer(
        binary=find_mysql(),
        folder=folder / "server",
        log=folder / "mysql.log",
        run=folder / "run",
        port=free_port(),
        admin_password=admin_password or token_hex(8),
        settings={name.replace("_", "-"): value for name, value in settings.items()},
    )
    server.run.mkdir(parents=True)
    try:
        server.start(Event())
        yield server
    finally:
        server.stop(server.run)


def find_mysql() -> Path:
    """Return `mysqld`. Skip the test if there is none, or only MariaDB's."""
    named = os.environ.get(FOLDER)
    on_path = shutil.which("mysqld")
    candidates: list[Path] = [
        *([Path(named) / "mysqld", Path(named) / "bin" / "mysqld"] if named else ()),
        *([Path(on_path)] if on_path else ()),
        *(Path(folder) / "mysqld" for folder in _USUAL_FOLDERS),
    ]
    for binary in candidates:
        if binary.is_file() and _is_mysql(binary):
            return binary
    pytest.skip(
        "no MySQL server is on this machine. Install MySQL 8.0 or newer (on Ubuntu and Debian sid, package "
        f"mysql-server), or name the folder of mysqld in {FOLDER}"
    )


def _is_mysql(binary: Path) -> bool:
    found = subprocess.run([str(binary), "--version"], capture_output=True, text=True, env=environment())
    return found.returncode == 0 and "MariaDB" not in found.stdout
