"""A person decides about tables that the source drops; values of dropped types stay readable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from pyarrow.fs import FileSelector

from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until
from tributary.local.pipeline import down
from tributary.local.state import StateFolder
from tributary.operations.kafka_topics import read_topic_ends

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

LARGE = 400_000
LAKE = """
[lake]
name = "gone"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""
TABLES = (
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE DOMAIN whole AS int CHECK (value >= 0)",
    "CREATE TABLE feelings (id int PRIMARY KEY, mood mood, amount whole)",
    "INSERT INTO feelings VALUES (1, 'glad', 7)",
    "CREATE TABLE dropped (id int PRIMARY KEY, v text)",
    "INSERT INTO dropped VALUES (1, 'former'), (2, 'former')",
    "CREATE TABLE kept (id int PRIMARY KEY)",
    "INSERT INTO kept VALUES (1), (2), (3)",
)


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    folder = tmp_path_factory.mktemp("gone")
    command = Tributary(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE)
    try:
        command.run("up")
        _run(command, *TABLES)
        command.run("up")
        command.run("ingest")
        yield command
    finally:
        down(StateFolder(command.state))


def test_values_of_an_enum_and_a_domain_that_were_dropped_while_the_connector_was_stopped(
    tributary: Tributary,
) -> None:
    _set_connector(tributary, "stop", "STOPPED")
    _run(
        tributary,
        "INSERT INTO feelings VALUES (2, 'sad', 42), (3, NULL, NULL)",
        "ALTER TABLE feelings ALTER mood TYPE text, ALTER amount TYPE int",
        "DROP TYPE mood",
        "DROP DOMAIN whole",
    )
    _set_connector(tributary, "resume", "RUNNING")
    _run(tributary, "INSERT INTO feelings VALUES (4, 'new', 5)")
    tributary.run("ingest")

    found = tributary.json("reconcile", "--wait", "120")
    assert found["identical"], found
    assert tributary.json("query", "SELECT id, mood, amount FROM feelings ORDER BY id") == [
        {"id": 1, "mood": "glad", "amount": 7},
        {"id": 2, "mood": "sad", "amount": 42},
        {"id": 3, "mood": None, "amount": None},
        {"id": 4, "mood": "new", "amount": 5},
    ]
    assert tributary.json("quarantine", "list") == []


def test_an_orphan_is_kept_or_removed_and_a_table_that_comes_back_has_its_own_rows_only(
    tributary: Tributary,
) -> None:
    _run(tributary, "DROP TABLE dropped", "DROP TABLE kept")
    listed = {one["table"]: one["state"] for one in tributary.json("orphans", "list")}
    assert listed == {"shop.public.dropped": "orphan", "shop.public.kept": "orphan"}
    assert _states(tributary)["shop.public.dropped"] == "orphan"
    assert "dropped (orphan)" in tributary.run("tables")
    refused = tributary.run("orphans", "remove", "feelings", "--yes", status=1)
    assert "the lake follows it" in refused

    assert tributary.json("orphans", "keep", "kept") == ["shop.public.kept"]
    assert tributary.json("orphans", "keep", "kept") == []
    assert _states(tributary)["shop.public.kept"] == "kept"
    (removed,) = tributary.json("orphans", "remove", "dropped", "--yes")
    assert removed["files"] > 3
    assert _objects(tributary, "dropped") == {"gone-quarantine/_orphans/shop/public/dropped.json"}
    tributary.run("ingest")
    assert "shop.public.dropped" not in _states(tributary)
    assert {one["table"] for one in tributary.json("tables")} == {"shop.public.feelings", "shop.public.kept"}

    _run(
        tributary,
        "CREATE TABLE dropped (id int PRIMARY KEY, v text)",
        "INSERT INTO dropped VALUES (2, 'new')",
    )
    tributary.run("up")
    tributary.run("snapshot")
    tributary.run("ingest")
    assert tributary.json("query", "SELECT id, v FROM dropped") == [{"id": 2, "v": "new"}]
    assert tributary.json("reconcile", "--wait", "120")["identical"]

    (removed,) = tributary.json("orphans", "remove", "kept", "--yes", "--events")
    assert removed["events_in_bronze"] == 3
    kafka = tributary.workspace.kafka
    wait_until(lambda: not read_topic_ends(kafka, ["gone.shop.public.kept"]), "end of the topic")
    assert "shop.public.kept" not in _states(tributary)
    tributary.run("ingest")
    assert tributary.json("orphans", "list") == []


def test_an_ingest_right_after_a_start_waits_for_the_snapshot_or_says_that_it_runs(
    tributary: Tributary,
) -> None:
    _run(
        tributary,
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        f"INSERT INTO large SELECT g, repeat('x', 200) FROM generate_series(1, {LARGE}) g",
    )
    tributary.run("up", "--resnapshot", "shop")
    refused = " ".join(tributary.run("ingest", "--wait", "0.1", status=1).split())
    assert "Kafka does not hold all rows of source shop yet: gave up waiting" in refused
    tributary.run("ingest")
    assert tributary.json("query", "SELECT count(*) AS n FROM large") == [{"n": LARGE}]
    _run(tributary, "DROP TABLE large")
    tributary.json("orphans", "list")
    tributary.run("orphans", "remove", "large", "--yes")


def _run(tributary: Tributary, *statements: str) -> None:
    with tributary.connect() as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _set_connector(tributary: Tributary, action: str, state: str) -> None:
    workspace = tributary.workspace
    (source,) = workspace.lake.sources
    name = workspace.lake.source_names(source).connector
    url = f"{workspace.settings.connect_url}/connectors/{name}"
    requests.put(f"{url}/{action}", timeout=30).raise_for_status()

    def is_done() -> bool:
        found = requests.get(f"{url}/status", timeout=30).json()
        states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])]
        return set(states) == {state} and (len(states) == 1) == (state == "STOPPED")

    wait_until(is_done, f"a connector that is {state}")


def _states(tributary: Tributary) -> dict[str, str]:
    return {one["table"]: one["state"] for one in tributary.json("status", status=None)["tables"]}


def _objects(tributary: Tributary, table: str) -> set[str]:
    """Return the files of a table in silver and quarantine."""
    workspace = tributary.workspace
    names, filesystem = workspace.lake.names, workspace.files.filesystem
    found = [
        info.path
        for bucket in (names.silver_bucket, names.quarantine_bucket)
        for info in filesystem.get_file_info(FileSelector(bucket, recursive=True))
        if info.is_file
    ]
    return {path for path in found if f"/{table}" in path}
