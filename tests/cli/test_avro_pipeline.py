"""A whole pipeline whose connector writes Avro gives the same lake as one that writes JSON."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from spark_app.schema_registry.framing import unframed
from tests.cli.test_whole_pipeline import CHANGES, SCHEMA, Tributary
from tests.local.landed import wait_until
from tributary.local.pipeline import down
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

LAKE = """
[lake]
name = "avro-test"

[registry]
kind = "apicurio"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
format = "avro"
"""
MORE = """
ALTER TABLE customers ADD COLUMN note text DEFAULT 'none';
UPDATE customers SET note = NULL WHERE name = 'customer 5';
INSERT INTO customers VALUES ('customer 7', NULL, NULL), ('customer 8', 'city 8', DEFAULT);
"""
TOPIC = "avro-test.shop.public.customers"


@pytest.fixture
def tributary(tmp_path: Path) -> Iterator[Tributary]:
    lake_file = tmp_path / "lake.toml"
    lake_file.write_text(LAKE)
    tributary = Tributary(lake_file, tmp_path / "state")
    try:
        yield tributary
    finally:
        down(StateFolder(tributary.state))


def test_avro_through_a_registry_gives_the_lake_that_the_database_has(tributary: Tributary) -> None:
    tributary.run("up")
    with tributary.connect() as connection:
        connection.execute(SCHEMA.encode())
    process = tributary.start("ingest", "--follow", "--json")
    try:
        with tributary.connect() as connection:
            connection.execute(CHANGES.encode())
        assert tributary.json("reconcile", "--wait", "300")["identical"]
        # A column with a default: the rows are read again, and the connector tells so in Avro.
        with tributary.connect() as connection:
            connection.execute(MORE.encode())
        wait_until(lambda: is_identical(tributary), "the rows that were read again")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert [json.loads(line)["event"] for line in output.splitlines()][-1] == "stopped"
    assert not tributary.json("quarantine", "list")
    assert all(unframed(value) for value in values_in_kafka(tributary))

    shown = tributary.json("events", "customers", "customer 5")
    assert shown[0]["op"] == "c"
    assert shown[-1]["after"] == {"name": "customer 5", "city": "city 5", "note": None}
    rows = "SELECT * FROM customers ORDER BY name"
    before = tributary.json("query", rows)
    tributary.run("rebuild", "customers")
    assert tributary.json("query", rows) == before
    assert tributary.json("reconcile")["identical"]


def is_identical(tributary: Tributary) -> bool:
    return bool(tributary.json("reconcile", "--wait", "300", status=None)["identical"])


def values_in_kafka(tributary: Tributary) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": tributary.workspace.settings.kafka_bootstrap, "group.id": "test"}
    )
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        found = [consumer.poll(30) for _ in range(end)]
        return [value for message in found if message and (value := message.value()) is not None]
    finally:
        consumer.close()
