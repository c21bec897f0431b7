"""The PostgreSQL server of the connectors' tests, and a JVM with the connector for SQL Server."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connectors.engines.sqlserver.connector import PLUGIN
from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.ports import free_port
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
def sqlserver() -> Iterator[Any]:
    """A JVM with Debezium's connector for SQL Server, and its driver."""
    plugins = unpack_plugins(build_plugins(names=(PLUGIN,)))
    with running_jvm([folder / "*" for folder in plugins.iterdir()]) as jvm:
        yield jvm
