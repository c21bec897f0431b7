"""A whole pipeline whose connector writes Avro gives the same lake as one that writes JSON."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from spark_app.schema_registry.framing import unframed
from tests.cli.test_whole_pipeline import CHANGES, SCHEMA, Tributary
from tests.local.landed import wait_until
from tests.spark_app.debezium import SourceTable
from tests.spark_app.registries import AvroWriter, converters, writings
from tests.spark_app.test_wire_forms import ALL_PLACES
from tributary.local.kafka import create_topic
from tributary.local.pipeline import down
from tributary.local.process import stop_process
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]

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
LATER = """
CREATE TABLE later (id integer PRIMARY KEY, note text);
INSERT INTO later VALUES (1, 'one'), (2, NULL);
"""
TOPIC = "avro-test.shop.public.customers"


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    folder = tmp_path_factory.mktemp("avro")
    lake_file = folder / "lake.toml"
    lake_file.write_text(LAKE)
    tributary = Tributary(lake_file, folder / "state")
    try:
        tributary.run("up")
        yield tributary
    finally:
        down(StateFolder(tributary.state))


def test_avro_through_a_registry_gives_the_lake_that_the_database_has(tributary: Tributary) -> None:
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
        # The connector needs the registry for the next new schema.
        assert stop_process("apicurio", StateFolder(tributary.state).run)
        with tributary.connect() as connection:
            connection.execute(LATER.encode())
        wait_until(lambda: "schema registry does not answer" in status_of(tributary), "the reason")
        tributary.run("up")
        wait_until(lambda: is_identical(tributary), "the rows after the registry was back")
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

    with tributary.connect() as connection:
        connection.execute("DELETE FROM customers WHERE name = 'customer 8'")
    tributary.run("ingest")
    erased = tributary.json("erase", "customers", "customer 8")
    assert not erased["unknown"]
    assert erased["events"] >= 3, "at least an insert, a delete and a tombstone"
    assert not any(erased["remains"][name] for name in ("events", "files", "quarantined"))
    assert not tributary.json("events", "customers", "customer 8", status=None)


def test_avro_of_another_connector_is_read_from_kafka_with_ids_before_the_record_or_in_headers(
    tributary: Tributary, tmp_path: Path
) -> None:
    things = SourceTable()
    things.begin()
    for key in range(1, 6):
        things.insert(key, f"row {key}", None)
    things.commit()
    things.begin()
    things.delete(2)
    things.update(3, "changed", None, body_is_unchanged=False)
    things.commit()
    lake_file = tmp_path / "lake.toml"
    lake_file.write_text(f"{LAKE}\n[source.shop.events]\ntopic_prefix = 'elsewhere'\n")
    with_foreign = Tributary(lake_file, tributary.state)
    address = tributary.workspace.settings.apicurio_address
    writing = writings(address, "http://unused")["apicurio"]
    in_headers = {"apicurio.registry.headers.enabled": "true"}
    with converters("apicurio") as jvm:
        for table, writer in {
            "framed": AvroWriter.of(jvm, writing),
            "unwrapped": AvroWriter.of(jvm, writing, ALL_PLACES),
            "of_version": AvroWriter.of(
                jvm, replace(writing, options={**in_headers, "apicurio.registry.use-id": "globalId"})
            ),
            "of_content": AvroWriter.of(jvm, replace(writing, options=in_headers)),
        }.items():
            send(tributary, writer, f"elsewhere.public.{table}", things)

    with_foreign.run("ingest", "--from", "kafka")

    expected = [{"id": key, "name": row["name"]} for key, row in sorted(things.rows.items())]
    for table in ("framed", "unwrapped", "of_version", "of_content"):
        found = with_foreign.json("query", f"SELECT id, name FROM {table} ORDER BY id")
        assert found == expected, table
    assert not with_foreign.json("quarantine", "list")


def send(tributary: Tributary, writer: AvroWriter, topic: str, things: SourceTable) -> None:
    kafka = tributary.workspace.settings.kafka_bootstrap
    create_topic(kafka, topic, 1)
    producer = Producer({"bootstrap.servers": kafka})
    records = [(event.key, event.value) for event in things.events]
    for sent in writer.with_headers(topic, records):
        producer.produce(topic, key=sent.key, value=sent.value, headers=list(sent.headers), partition=0)
    assert producer.flush(60) == 0


def status_of(tributary: Tributary) -> str:
    return str(tributary.json("status", status=None))


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
