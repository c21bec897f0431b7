"""The database servers of the connectors' tests, and a JVM with the connector for SQL Server."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.binlog.session import Session
from connectors.engines.engine import Login
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from connectors.engines.sqlserver.connector import PLUGIN
from connectors.plugins import build_plugins, unpack_plugins
from tests import mysql_server
from tests.conftest import running_jvm
from tests.mysql_server import MySqlServer, running_mysql
from tests.ports import free_port
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, parse_lake
from tributary.local import mariadb
from tributary.local.mariadb import MariaDbServer
from tributary.local.postgres import (
    PostgresServer,
    connect_as_admin,
    create_database,
)
from tributary.local.server_files import read_server_files


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL server with wal_level=logical."""
    folder = tmp_path_factory.mktemp("postgres")
    port = free_port()
    server = PostgresServer(
        binaries=read_server_files().postgres,
        folder=folder / "server",
        log=folder / "postgres.log",
        run=folder / "run",
        port=port,
        admin_password=secrets.token_urlsafe(),
    )
    try:
        server.start(threading.Event())
        yield server
    finally:
        server.stop(server.run)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The name of an empty database, which is dropped after the test."""
    name = f"db_{secrets.token_hex(6)}"
    with connect_as_admin(postgres) as admin:
        create_database(admin, name)
        yield name
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def admin(postgres: PostgresServer, database: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection to that database."""
    with connect_as_admin(postgres, database) as connection:
        yield connection


@pytest.fixture(scope="session")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """A MariaDB server."""
    folder = tmp_path_factory.mktemp("maria")
    port = free_port()
    binaries = read_server_files(with_mariadb=True).mariadb
    assert binaries is not None
    running = MariaDbServer(
        binaries, folder / "server", folder / "log", folder / "run", port, secrets.token_hex(8)
    )
    running.run.mkdir()
    try:
        running.start(threading.Event())
        yield running
    finally:
        running.stop(running.run)


@pytest.fixture(scope="session")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    """A MySQL server. Without one on this machine, the tests are skipped."""
    with running_mysql(tmp_path_factory.mktemp("mysql")) as running:
        yield running


@dataclass(frozen=True)
class BinlogServer:
    """A MariaDB or MySQL server, and its administrator."""

    engine: BinlogEngine
    key: str
    port: int
    admin: str
    password: str

    @property
    def has_encryption(self) -> bool:
        return self.key == "mysql"

    def lake(self, tables: str = '["shop.*"]') -> Lake:
        return parse_lake(
            f'[lake]\nname = "shop-lake"\n[source.web]\nengine = "{self.key}"\ntables = {tables}\n'
            '[source.web.connection]\nhost = "h"\nadmin_user = "root"\nadmin_password_env = "P"\n'
            'ssl_mode = "disabled"\n'
        )

    def source(self, tables: str = '["shop.*"]') -> BinlogSource:
        (source,) = self.lake(tables).sources
        assert isinstance(source, BinlogSource)
        return source

    def log_in(self, user: str, password: str) -> Session:
        return self.engine.connect(self.source(), Login("127.0.0.1", self.port, user, SecretStr(password)))

    def log_in_as_admin(self) -> Session:
        return self.log_in(self.admin, self.password)


@pytest.fixture(params=["mariadb", "mysql"])
def binlog_server(request: pytest.FixtureRequest) -> BinlogServer:
    """Each of the servers with a binary log, one after the other."""
    if request.param == "mysql":
        mysql: MySqlServer = request.getfixturevalue("mysql")
        return BinlogServer(MySqlEngine(), "mysql", mysql.port, mysql_server.ADMIN, mysql.admin_password)
    maria: MariaDbServer = request.getfixturevalue("maria")
    return BinlogServer(MariaDbEngine(), "mariadb", maria.port, mariadb.ADMIN, maria.admin_password)


@pytest.fixture(scope="session")
def sqlserver() -> Iterator[Any]:
    """A JVM with Debezium's connector for SQL Server, and its driver."""
    plugins = unpack_plugins(build_plugins(names=(PLUGIN,)))
    with running_jvm([folder / "*" for folder in plugins.iterdir()]) as jvm:
        yield jvm
