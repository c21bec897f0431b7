"""Derived tables on the whole pipeline: from changes and events to the rows of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.cli.test_whole_pipeline import Tributary
from tributary.api.event_payloads import EventPayloads
from tributary.local.pipeline import down
from tributary.local.schema_registry import registry_of
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

LAKE = '''
[lake]
name = "cli-derived"
[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
[registry]
kind = "apicurio"
[topic.purchases]
topic = "purchases"
columns = { id = "bigint", customer = "bigint", amount = "numeric(9,2)", at = "timestamp with time zone" }
event_time = "at"
watermark = "10m"
unique = ["id"]
[derived.by_country]
key = ["country"]
sql = """
SELECT c.country, sum(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY 1
"""
[derived.large]
key = ["country"]
sql = "SELECT country FROM by_country WHERE total > 20"
[derived.by_window]
key = ["window_start"]
file = "by_window.sql"
[derived.enriched]
key = ["id"]
sql = "SELECT p.id, c.country, p.amount FROM purchases p LEFT JOIN customers c ON c.id = p.customer"
topic = "enriched"
topic_format = "avro"
[derived.raises]
key = ["id"]
python = "raises.py"
inputs = ["orders"]
[derived.broken]
key = ["id"]
sql = "SELECT id, no_such_column FROM orders"
'''
WINDOWS = """
SELECT window.start AS window_start, count(*) AS purchases
FROM purchases GROUP BY window(at, '10 minutes', '5 minutes')
"""
RAISES = """
def derive(orders):
    raise ValueError("boom")
"""
SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, country text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount numeric(9,2));
INSERT INTO customers VALUES (1, 'US'), (2, 'DE');
INSERT INTO orders VALUES (1, 1, 10), (2, 1, 15.5), (3, 2, 5);
"""


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    folder = tmp_path_factory.mktemp("derived")
    command = Tributary(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE)
    (folder / "by_window.sql").write_text(WINDOWS)
    (folder / "raises.py").write_text(RAISES)
    try:
        command.run("up")
        with command.connect() as connection:
            connection.execute(SCHEMA.encode())
        command.run("up")
        command.run("ingest")
        yield command
    finally:
        down(StateFolder(command.state))


def send(tributary: Tributary, *events: tuple[int, int, str]) -> None:
    """Send purchases: id, customer and time of day. Each amount is 1."""
    bootstrap: dict[str, str | int | float | bool] = {
        "bootstrap.servers": tributary.workspace.settings.kafka_bootstrap
    }
    admin = AdminClient(bootstrap)
    if "purchases" not in admin.list_topics(timeout=10).topics:
        for created in admin.create_topics([NewTopic("purchases", 1, 1)]).values():
            created.result()
    producer = Producer(bootstrap)
    for number, customer, time in events:
        event = {"id": number, "customer": customer, "amount": 1, "at": f"2026-03-01T{time}:00Z"}
        producer.produce("purchases", value=json.dumps(event).encode())
    producer.flush(30)


def enriched(tributary: Tributary) -> list[dict[str, Any]]:
    """Return the values in the output topic, whose schemas are in the registry."""
    payloads = EventPayloads(registry_of(tributary.workspace.lake, tributary.workspace.settings))
    bootstrap = tributary.workspace.settings.kafka_bootstrap
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition("enriched", 0, 0)])
    found = consumer.consume(100, timeout=10)
    consumer.close()
    return [payloads.read(message.value()) for message in found]


def rows(tributary: Tributary, sql: str) -> list[list[Any]]:
    return [list(row.values()) for row in tributary.json("query", sql)]


def test_derived_tables_follow_the_database_and_the_events(tributary: Tributary) -> None:
    send(tributary, (1, 1, "12:01"), (2, 2, "12:07"), (2, 2, "12:07"))
    told = tributary.run("derive", status=1)
    assert "no_such_column" in told, "one broken table stops no other"
    assert "raises.py, line 3" in told
    assert rows(tributary, "SELECT country FROM large") == [["US"]]
    with tributary.connect() as connection:
        connection.execute("DELETE FROM orders WHERE id = 3")
        connection.execute("UPDATE customers SET country = 'DE' WHERE id = 1")
    tributary.run("ingest")
    send(tributary, (3, 1, "12:40"))
    tributary.run("derive", "by_country", "large", "by_window", "enriched")
    send(tributary, (4, 1, "12:02"))  # Behind the watermark.
    tributary.run("derive", "by_window")
    totals = rows(tributary, "SELECT country, total::double FROM by_country ORDER BY 1")
    assert totals == [["DE", 25.5]]
    assert rows(tributary, "SELECT country FROM large") == [["DE"]]
    windows = rows(
        tributary, "SELECT strftime(window_start, '%H:%M'), purchases FROM by_window ORDER BY window_start"
    )
    assert windows == [["11:55", 1], ["12:00", 2], ["12:05", 1], ["12:35", 1], ["12:40", 1]]
    by_id = {one["id"]: one["country"] for one in enriched(tributary)}
    assert by_id == {1: "US", 2: "DE", 3: "DE"}
    states = {one["table"]: one["state"] for one in tributary.json("status", status=1)["tables"]}
    assert states["derived.tables.broken"] == states["derived.tables.raises"] == "blocked"
    assert states["derived.tables.by_country"] == "well"
