"""`tributary init` writes a lake file of a real PostgreSQL, with which a start leaves out nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from connectors.engines.binlog.session import execute
from connectors.engines.registry import engine_of
from tests.postgres_source import postgres_source
from tributary.cli import main
from tributary.contract.lake import read_lake
from tributary.contract.table_name import TableName
from tributary.local.mariadb import ADMIN, MariaDbServer
from tributary.local.postgres import PostgresServer
from tributary.local.server_files import read_server_files
from tributary.local.state import StateFolder, choose_ports
from tributary.operations.first_look.lake_text import source_name

pytestmark = pytest.mark.slow

TABLES = """
CREATE TABLE users (id int PRIMARY KEY, email text, contact text, born date);
INSERT INTO users SELECT n, 'x', 'user' || n || '@shop.example' FROM generate_series(1, 50) n;
CREATE TABLE no_key (a int NOT NULL, b int NOT NULL, UNIQUE (a, b));
CREATE TABLE with_identity (a int NOT NULL, b int NOT NULL, UNIQUE (a, b));
ALTER TABLE with_identity REPLICA IDENTITY USING INDEX with_identity_a_b_key;
CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY);
CREATE TABLE alembic_version (version_num text PRIMARY KEY);
CREATE TABLE "odd.name" (id int PRIMARY KEY);
CREATE SCHEMA sales;
CREATE TABLE sales.large (id bigint PRIMARY KEY, at date) PARTITION BY RANGE (id);
CREATE TABLE sales.large_1 PARTITION OF sales.large FOR VALUES FROM (0) TO (10);
UPDATE pg_class SET reltuples = 4500000 WHERE relname = 'large_1';
"""


def init(
    server: PostgresServer, connection: psycopg.Connection, folder: Path, *options: str, status: int = 0
) -> Path:
    lake_file = folder / "lake.toml"
    url = f"postgresql://postgres@127.0.0.1:{server.port}/{connection.info.dbname}"
    assert main.run(["init", url, "--name", "shop", "--lake", str(lake_file), *options]) == status
    return lake_file


def test_the_written_file_takes_what_can_be_taken_and_a_check_finds_nothing_more(
    postgres_server: PostgresServer,
    database: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    database.execute(TABLES.encode())
    variable = f"{source_name(database.info.dbname).upper()}_ADMIN_PASSWORD"
    monkeypatch.setenv(variable, postgres_server.admin_password)

    lake_file = init(postgres_server, database, tmp_path, "--json")

    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    tables = {table["table"]: table for table in told["tables"]}
    assert told["problems"] == []
    assert {name for name, table in tables.items() if not table["taken"]} == {
        "public.no_key",
        "public.scratch",
        "public.odd.name",
    }
    assert "unlogged" in tables["public.scratch"]["problems"][0]
    assert 'no_key"] with key = ["a", "b"]' in tables["public.no_key"]["problems"][-1]
    assert tables["public.users"]["personal"] == {
        "email": "an e-mail address, by its name",
        "contact": "an e-mail address, by its values",
        "born": "a date of birth, by its name",
    }
    lake, text = read_lake(lake_file), lake_file.read_text()
    source = postgres_source(lake)
    assert postgres_server.admin_password not in text
    assert f'admin_password_env = "{variable}"' in text
    assert '# "!public.alembic_version"' in text
    assert lake.policy(TableName(source.name, "public", "with_identity")).key == ("a", "b")
    assert lake.policy(TableName(source.name, "sales", "large")).buckets == 5
    found = engine_of(source).check(database, lake, source)
    assert found.left_out == ()
    assert found.parts == {TableName(source.name, "sales", "large_1")}


def test_a_lake_file_is_never_overwritten_and_no_secret_is_told(
    postgres_server: PostgresServer,
    database: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "lake.toml").write_text("mine")
    assert init(postgres_server, database, tmp_path, status=1).read_text() == "mine"
    assert "stays as it is" in capsys.readouterr().err
    (tmp_path / "lake.toml").unlink()
    assert not init(postgres_server, database, tmp_path, status=1).exists()
    assert "holds no password" in capsys.readouterr().err
    variable = f"{source_name(database.info.dbname).upper()}_ADMIN_PASSWORD"
    monkeypatch.setenv(variable, "wrong password")
    assert not init(postgres_server, database, tmp_path, status=1).exists()
    told = capsys.readouterr().err
    assert "authentication failed" in told
    assert "wrong password" not in told
    monkeypatch.setenv(variable, postgres_server.admin_password)
    assert not init(postgres_server, database, tmp_path, status=1).exists()
    assert "no tables to take" in capsys.readouterr().err


def test_a_mariadb_is_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateFolder(tmp_path / "state")
    state.create()
    port = choose_ports({}, None, frozenset()).mariadb
    binaries = read_server_files(with_mariadb=True).mariadb
    assert binaries is not None
    assert port is not None
    server = MariaDbServer(
        binaries=binaries,
        folder=state.mariadb,
        log=state.log("mariadb"),
        run=state.run,
        port=port,
        admin_password="a password for tests",
    )
    monkeypatch.setenv("SHOP_ADMIN_PASSWORD", server.admin_password)
    lake_file = tmp_path / "lake.toml"
    try:
        server.start(threading.Event())
        with pymysql.connect(
            host="127.0.0.1", port=port, user=ADMIN, password=server.admin_password, autocommit=True
        ) as session:
            for statement in MARIADB_TABLES:
                execute(session, statement)
        url = f"mariadb://{ADMIN}@127.0.0.1:{port}/shop"
        assert main.run(["init", url, "--lake", str(lake_file), "--json"]) == 0
    finally:
        MariaDbServer.stop(state.run)

    tables = {table["table"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert {name for name, table in tables.items() if not table["taken"]} == {
        "shop.in_memory",
        "shop.nothing_unique",
    }
    lake = read_lake(lake_file)
    assert lake.policy(TableName("shop", "shop", "no_key")).key == ("a", "b")
    assert lake.sources[0].matches("shop", "no_key")
    assert not lake.sources[0].matches("other", "elsewhere")
    assert tables["shop.users"]["personal"] == {"contact": "an e-mail address, by its values"}


MARIADB_TABLES = (
    "CREATE DATABASE shop",
    "CREATE DATABASE other",
    "CREATE TABLE other.elsewhere (id int PRIMARY KEY)",
    "CREATE TABLE shop.users (id int PRIMARY KEY, contact varchar(100))",
    "INSERT INTO shop.users VALUES (1, 'a@shop.example'), (2, NULL), (3, 'c@shop.example')",
    "CREATE TABLE shop.no_key (a int NOT NULL, b int NOT NULL, c int, UNIQUE (b, a), UNIQUE (c))",
    "CREATE TABLE shop.nothing_unique (a int)",
    "CREATE TABLE shop.in_memory (id int PRIMARY KEY) ENGINE = MEMORY",
)
