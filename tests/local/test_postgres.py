"""The PostgreSQL server starts from any state that a crash leaves of its folder, and reveals no secret."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tributary.local.postgres import (
    PostgresServer,
    connect_as_admin,
    create_database,
    create_login,
)
from tributary.local.process import ServiceFailed
from tributary.local.server_account import NoServerAccount
from tributary.local.server_files import read_server_files
from tributary.local.state import choose_ports

pytestmark = pytest.mark.slow

NEVER = threading.Event()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that has not started yet, below a folder that only its owner may enter."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    server = PostgresServer(
        binaries=read_server_files().postgres,
        folder=home / "postgres",
        log=home / "postgres.log",
        run=home / "run",
        port=choose_ports({}, None, frozenset()).postgres,
        admin_password=secrets.token_hex(),
    )
    yield server
    server.stop(server.run)


def test_a_server_starts_in_a_private_folder_and_keeps_its_databases(server: PostgresServer) -> None:
    for _ in range(2):
        server.start(NEVER)
        with connect_as_admin(server) as admin:
            create_database(admin, "shop")
        with connect_as_admin(server, "shop") as shop:
            shop.execute("CREATE TABLE IF NOT EXISTS goods (id serial PRIMARY KEY)")
            shop.execute("INSERT INTO goods DEFAULT VALUES")
            count = shop.execute("SELECT count(*) FROM goods").fetchone()
        assert server.stop(server.run)

    assert count == (2,)
    assert server.data.stat().st_mode & 0o077 == 0
    assert not (server.folder / "admin-password").exists()


def test_a_half_made_data_folder_is_created_again(server: PostgresServer) -> None:
    half_made = server.folder / "data.draft"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("16\n")

    server.start(NEVER)

    with connect_as_admin(server) as admin:
        assert admin.execute("SHOW wal_level").fetchone() == ("logical",)


def test_a_lock_file_with_a_reused_pid_does_not_stop_a_start(server: PostgresServer) -> None:
    server.start(NEVER)
    lock = server.data / "postmaster.pid"
    lines = lock.read_text().splitlines()
    server.stop(server.run)
    # As after a crash of the machine: this test's pid is the former server's pid.
    lock.write_text("\n".join([str(os.getpid()), lines[1], "1000000000", *lines[3:]]) + "\n")

    server.start(NEVER)

    with connect_as_admin(server):
        pass


def test_a_data_folder_of_other_settings_is_reported(server: PostgresServer) -> None:
    server.start(NEVER)
    server.stop(server.run)

    with pytest.raises(ServiceFailed, match="does not accept the password of this state folder"):
        replace(server, admin_password="of another state folder").start(NEVER)


def test_a_login_has_the_password_it_was_last_given_and_no_log_has_it(server: PostgresServer) -> None:
    server.start(NEVER)
    with connect_as_admin(server) as admin:
        for password in ("the first", "the second"):
            create_login(admin, "reader", password)
        with pytest.raises(psycopg.Error):
            admin.execute("ALTER ROLE nobody_here PASSWORD 'typed by a person'")

    conninfo = f"host=127.0.0.1 port={server.port} user=reader dbname=postgres"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(conninfo, password="the first")
    psycopg.connect(conninfo, password="the second").close()
    log = server.log.read_text()
    assert "nobody_here" in log
    assert not [text for text in ("the first", "the second", "typed by a person") if text in log]


def test_root_without_setpriv_gets_an_error_that_names_it(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(NoServerAccount, match=r"does not run as root.*util-linux"):
        server.start(NEVER)
