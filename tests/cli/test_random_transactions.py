"""After random transactions on a real PostgreSQL, sent by a real Debezium, the lake equals the database."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import psycopg
import pytest

from tests.cli.random_transactions import MORE_OF_THE_LAKE_FILE, TABLES, create_tables, transact
from tests.cli.test_whole_pipeline import Tributary
from tributary.local.pipeline import down
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED = 20_261
TRANSACTIONS = 120
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
