"""After random transactions on a real PostgreSQL, sent by a real Debezium, the lake equals the database."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest

from tests.cli.random_transactions import MORE_OF_THE_LAKE_FILE, TABLES, create_tables, transact
from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until
from tributary.local.pipeline import down
from tributary.local.process import read_process
from tributary.local.spark import SERVICE as SPARK
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

SEED = 20_261
QUIET = "quiet"
"""A table that no transaction touches. Others can be truncated, or read again after a change of columns."""
TRANSACTIONS = 120
PATIENCE_SECONDS = 1200
"""For a lake that follows transactions all the time, on a machine that does other work, too."""
LAKE = """
[lake]
name = "random-test"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
partitions = 3
"""


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    """A pipeline whose database has only empty tables."""
    folder = tmp_path_factory.mktemp("random")
    command = Tributary(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE + MORE_OF_THE_LAKE_FILE)
    try:
        command.run("up")
        with command.connect() as connection:
            create_tables(connection)
        command.run("up")
        yield command
    finally:
        down(StateFolder(command.state))


def test_after_random_transactions_of_every_kind_the_lake_equals_the_database(tributary: Tributary) -> None:
    chance = random.Random(SEED)
    with tributary.connect() as connection:
        _run_transactions(connection, chance)
    process = tributary.start("ingest", "--follow", "--json")
    try:
        with tributary.connect() as connection:
            _run_transactions(connection, chance)
        found = tributary.json("reconcile", "--wait", "600")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)

    assert found["identical"], (found, output)
    assert process.returncode == 130, errors
    assert {table["table"] for table in found["tables"]} == {f"shop.public.{name}" for name in TABLES}
    assert tributary.json("quarantine", "list") == []


def _run_transactions(connection: psycopg.Connection, chance: random.Random) -> None:
    for number in range(TRANSACTIONS // 2):
        transact(connection, chance, evolves=number % 15 == 14)


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_verification_finds_rows_that_changed_without_an_event_and_nothing_else(tributary: Tributary) -> None:
    names = [f"shop.public.{name}" for name in (*TABLES, QUIET)]
    with tributary.connect() as connection:
        _fill_every_table(connection)
        connection.execute(f"CREATE TABLE {QUIET} (id bigint PRIMARY KEY, name text, body text)".encode())
        connection.execute(f"INSERT INTO {QUIET} VALUES (1, 'first', NULL)".encode())
    tributary.run("up")
    tributary.run("ingest")
    process = tributary.start("ingest", "--follow", "--json")
    # A pipe that nobody reads would stop the ingest once it is full.
    reader = threading.Thread(target=process.communicate, name="ingest", daemon=True)
    reader.start()
    try:
        # The ingest has read the file before. Otherwise it could find and mend the rows first.
        run = StateFolder(tributary.state).run
        wait_until(lambda: read_process(SPARK, run) is not None, "Spark app", PATIENCE_SECONDS)
        tributary.lake_file.write_text(f"{LAKE}{MORE_OF_THE_LAKE_FILE}[verify]\nrepair = true\n")
        with tributary.connect() as connection, _transactions_go_on(tributary):
            for name in names:  # The columns that came and went may still let tables be read again.
                _wait_until_equal(tributary, name)
            busy = {one["table"]: one for one in _verify(tributary, "--full")}
            assert {name: busy[name]["differences"] for name in names} == dict.fromkeys(names, 0), busy
            assert {busy[name]["problem"] for name in names} == {None}, busy
            silent = _change_without_events(connection, QUIET)

            found = {one["table"]: one for one in _verify(tributary, "--full")}
            quiet = found[f"shop.public.{QUIET}"]
            assert quiet["differences"] == len(silent), quiet
            assert {name for name in names if found[name]["differences"]} == {f"shop.public.{QUIET}"}, found
            assert {int(one["key"]["id"]): one["kind"] for one in quiet["examples"]} == silent
            assert quiet["remedy"] == f"tributary snapshot 'shop.public.{QUIET}'"
            assert quiet["repair_asked_at"] is not None
        _wait_until_equal(tributary, f"shop.public.{QUIET}")
        status = {one["table"]: one for one in tributary.json("status")["tables"]}
        assert status[f"shop.public.{QUIET}"]["verified"]["equal_as_of"] is not None
        assert "verified as of" in tributary.run("tables")
    finally:
        process.send_signal(signal.SIGINT)
        reader.join(600)
        assert not reader.is_alive()


def _fill_every_table(connection: psycopg.Connection) -> None:
    """Give each table a row that the transactions may change. A lake table comes with its first row."""
    for table in TABLES:
        connection.execute(f"INSERT INTO {table} (id, name) VALUES (1, 'a') ON CONFLICT DO NOTHING".encode())


def _verify(tributary: Tributary, *arguments: str) -> list[dict[str, Any]]:
    verification = tributary.start("verify", "--json", "--wait", "300", *arguments)
    output, errors = verification.communicate()
    assert output, errors
    found: list[dict[str, Any]] = json.loads(output)
    return found


def _change_without_events(connection: psycopg.Connection, table: str) -> dict[int, str]:
    """Change rows of a table while it is not published. Return how the lake differs.

    Nobody else may change the table."""
    connection.execute(
        f"INSERT INTO {table} (id, name) VALUES (1001, 'a'), (1002, 'b'), (1003, 'c')".encode()
    )
    (publication,) = connection.execute("SELECT pubname FROM pg_publication").fetchone() or ("",)
    # The other tables' transactions see the publication as it is before or after this one, which is the same.
    with connection.transaction():
        connection.execute(f"ALTER PUBLICATION {publication} DROP TABLES IN SCHEMA public".encode())
        connection.execute(f"UPDATE {table} SET body = 'silent' WHERE id = 1001".encode())
        connection.execute(f"DELETE FROM {table} WHERE id = 1002".encode())
        connection.execute(f"INSERT INTO {table} (id, name) VALUES (1004, 'silent')".encode())
        connection.execute(f"ALTER PUBLICATION {publication} ADD TABLES IN SCHEMA public".encode())
    return {1001: "changed", 1002: "extra", 1004: "missing"}


@contextmanager
def _transactions_go_on(tributary: Tributary) -> Iterator[None]:
    stop = threading.Event()

    def go_on() -> None:
        with tributary.connect() as connection:
            for number in count(SEED):
                if stop.wait(2):
                    return
                transact(connection, random.Random(number))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _wait_until_equal(tributary: Tributary, table: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        (found,) = _verify(tributary, table, "--full")
        if not found["differences"] and found["problem"] is None:
            return
        time.sleep(2)
    raise AssertionError(f"{table} still differs: {found}")
