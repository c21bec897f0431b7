"""The command works on the whole pipeline with real servers and Spark, also after a lake was damaged."""

from __future__ import annotations

import base64
import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import requests
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.browser.chromium import chromium
from tests.console import pages
from tests.console.walk import Walk, answers, environment, served
from tests.local.landed import wait_until
from tests.operations.receivers import webhook
from tests.ports import free_port
from tests.spark_app.debezium import SourceTable
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down
from tributary.local.process import read_log_tail
from tributary.local.s3 import s3_client
from tributary.local.state import StateFolder
from tributary.operations.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PARTITIONS = 2
LAKE = f"""
[lake]
name = "cli-test"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
partitions = {PARTITIONS}

[table."shop.public.customers"]
deletes = "soft"

[alerts]
quarantine = 0
webhook_env = "TESTS_WEBHOOK"
"""
SCHEMA = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer text NOT NULL, amount numeric(10, 2), placed timestamptz,
    tags text[], details jsonb, ratio double precision, gone text
);
CREATE TABLE customers (name text PRIMARY KEY, city text);
CREATE TABLE nothing_yet (id int PRIMARY KEY);
INSERT INTO orders
    SELECT n, 'customer ' || n % 7, n * 1.10,
        timestamptz '2026-01-01 00:00:00.123456+02' + n * interval '1 hour',
        ARRAY['a', NULL, n::text], jsonb_build_object('n', n),
        CASE WHEN n % 5 = 0 THEN 'NaN' ELSE n / 3.0 END, 'x'
    FROM generate_series(1, 50) n;
INSERT INTO customers SELECT 'customer ' || n, 'city ' || n FROM generate_series(0, 6) n;
"""
CHANGES = """
UPDATE orders SET amount = amount + 1 WHERE id <= 5;
DELETE FROM orders WHERE id BETWEEN 6 AND 8;
UPDATE orders SET id = 1009 WHERE id = 9;
ALTER TABLE orders ADD COLUMN channel text;
ALTER TABLE orders DROP COLUMN gone;
UPDATE orders SET channel = 'web' WHERE id BETWEEN 10 AND 12;
DELETE FROM customers WHERE name = 'customer 3';
UPDATE customers SET city = NULL WHERE name = 'customer 4';
"""
ORDERS_TOPIC = "cli-test.shop.public.orders"
Forge = Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Tributary:
    """The installed command with its own lake file and state folder."""

    lake_file: Path
    state: Path

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name("tributary")), *arguments]
        options = ["--state", str(self.state)]
        if arguments[0] != "down":
            options += ["--lake", str(self.lake_file)]
        return subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A test may read what a command that follows has said only at its end.
            pipesize=2**20,
            text=True,
            process_group=0,
            env={**environment(), **variables},
        )

    def run(self, *arguments: str, status: int = 0) -> str:
        """Return the command's output. Fail if its status differs or if it prints a traceback."""
        process = self.start(*arguments)
        output, errors = process.communicate()
        if process.returncode != status:
            told = f"{arguments}: {process.returncode}\n{output}\n{errors}\n{self.ends_of_logs()}"
            raise AssertionError(told)
        assert "Traceback" not in errors
        return output + errors if status else output

    def json(self, *arguments: str, status: int | None = 0) -> Any:
        process = self.start(*arguments, "--json")
        output, errors = process.communicate()
        has_status = status is None or process.returncode == status
        told = f"{arguments}: {process.returncode}\n{output}\n{errors}"
        assert has_status, told
        assert output, told
        return json.loads(output)

    def ends_of_logs(self) -> str:
        """Return the last lines of each server's log, for a failure that cannot be repeated."""
        logs = sorted(StateFolder(self.state).logs.glob("*.log"))
        return "\n".join(f"{log.name}:\n{read_log_tail(log, 20)}" for log in logs)

    @property
    def workspace(self) -> Workspace:
        return Workspace.open(self.lake_file, self.state)

    def connect(self) -> psycopg.Connection:
        workspace = self.workspace
        (source,) = workspace.lake.sources
        database = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)
        session: psycopg.Connection = database.connect()
        return session


@pytest.fixture(scope="module")
def tributary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tributary]:
    """A pipeline whose lake holds the first state of the database."""
    folder = tmp_path_factory.mktemp("pipeline")
    command = Tributary(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE)
    try:
        command.run("up")
        with command.connect() as connection:
            connection.execute(SCHEMA.encode())
        command.run("up")
        # At once: it waits until Kafka has all rows.
        command.run("ingest")
        yield command
    finally:
        down(StateFolder(command.state))


def wait_for_topic(tributary: Tributary, table: str, events: int) -> None:
    """Return once Debezium has sent this many events of the table."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        behind = {one["table"]: one["events_behind"] for one in tributary.json("status")["tables"]}
        if behind.get(f"shop.public.{table}", 0) >= events:
            return
        time.sleep(0.5)
    raise AssertionError(f"Debezium has not sent {events} events of {table}")


def s3_of(tributary: Tributary) -> Any:
    settings = tributary.workspace.settings
    secrets = settings.secrets
    return s3_client(
        settings.s3_endpoint,
        secrets.s3_access_key.get_secret_value(),
        secrets.s3_secret_key.get_secret_value(),
    )


def _remove_from_silver(tributary: Tributary, table: str) -> None:
    names, client = tributary.workspace.lake.names, s3_of(tributary)
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=names.silver_bucket, Prefix=f"shop/public/{table}/"
    )
    keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
    assert keys
    for key in keys:
        client.delete_object(Bucket=names.silver_bucket, Key=key)


def _let_kafka_forget(tributary: Tributary, topic: str) -> None:
    """Delete all records of the topic, as its retention eventually does."""
    admin = AdminClient({"bootstrap.servers": tributary.workspace.settings.kafka_bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values()
    assert deleted.result(30).low_watermark > 0


def _forge(tributary: Tributary, order: int, change: Forge) -> None:
    """Send an event that the database never caused: the latest event of the order, changed."""
    bootstrap = tributary.workspace.settings.kafka_bootstrap
    key, value = _latest_event(bootstrap, order)
    forged_key, forged_value = change(key, value)
    # As Kafka Connect spreads keys over partitions: an order's events stay in one.
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    producer.produce(ORDERS_TOPIC, key=_as_connect_writes(forged_key), value=_as_connect_writes(forged_value))
    assert producer.flush(30) == 0


def _as_connect_writes(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def _latest_event(bootstrap: str, order: int) -> tuple[dict[str, Any], dict[str, Any]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    try:
        places = [TopicPartition(ORDERS_TOPIC, partition, 0) for partition in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
        consumer.assign(places)
        found = None
        for _ in range(sum(ends)):
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            key, value = message.key(), message.value()
            if key and value and json.loads(key).get("payload", {}).get("id") == order:
                found = json.loads(key), json.loads(value)
        assert found is not None
        return found
    finally:
        consumer.close()


def _with_amount_changed(key: dict[str, Any], value: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    value["payload"]["op"] = "u"
    value["payload"]["after"]["amount"] = 0.01
    return key, _as_streamed(value)


def _deleted(key: dict[str, Any], value: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    value["payload"] |= {"op": "d", "before": value["payload"]["after"], "after": None}
    return key, _as_streamed(value)


def _under_another_key(key: dict[str, Any], value: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    key["payload"]["id"] = value["payload"]["after"]["id"] = 4711
    value["payload"]["op"] = "c"
    return key, _as_streamed(value)


def _as_streamed(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value with a source position after everything that was sent before."""
    value["payload"]["source"] |= {"snapshot": "false", "sequence": json.dumps([str(2**60), str(2**60)])}
    return value


def _spark_processes(state: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(state) in " ".join(process.info["cmdline"] or ())
        and "main.py" in " ".join(process.info["cmdline"])
    ]


def test_rows_of_the_database_are_answered_in_sql_with_their_types(tributary: Tributary) -> None:
    assert tributary.json(
        "query",
        "SELECT * EXCLUDE (_source_ts, _log_position, _seq, _partition, _offset) FROM orders WHERE id = 15",
    ) == [
        {
            "id": 15,
            "customer": "customer 1",
            "amount": "16.50",
            "placed": "2026-01-01T13:00:00.123456+00:00",
            "tags": ["a", None, "15"],
            "details": '{"n": 15}',
            "ratio": "nan",
            "gone": "x",
            "_key": '{"id":15}',
            "_op": "c",
            "_topic": ORDERS_TOPIC,
        }
    ]
    places = tributary.json("query", "SELECT _partition, _offset FROM orders")
    assert {(str(one["_partition"]), one["_offset"]) for one in places} == {
        (partition, offset)
        for partition, events in tributary.json("history", "orders")[-1]["positions"].items()
        for offset in range(events)
    }
    joined = "SELECT count(*) AS n FROM shop.public.orders o JOIN customers c ON o.customer = c.name"
    assert tributary.json("query", joined) == [{"n": 50}]


def test_after_every_kind_of_change_the_lake_equals_the_database(tributary: Tributary) -> None:
    with tributary.connect() as connection:
        connection.execute(CHANGES.encode())
    process = tributary.start("ingest", "--follow", "--json")
    try:
        found = tributary.json("reconcile", "--wait", "600")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    reports = [json.loads(line) for line in output.splitlines()]
    assert reports[-1] == {
        "event": "stopped",
        "tables": {"shop.public.customers": "ok", "shop.public.orders": "ok"},
        "not_in_catalog": {},
    }
    assert _spark_processes(tributary.state) == []

    assert found["identical"], found
    assert {table["table"]: table["rows"] for table in found["tables"]} == {
        "shop.public.customers": 6,
        "shop.public.nothing_yet": 0,
        "shop.public.orders": 47,
    }
    (orders,) = (table for table in found["tables"] if table["table"] == "shop.public.orders")
    assert orders["dropped_columns"] == ["gone"]
    deleted = tributary.json("query", "SELECT name, city, _deleted FROM customers WHERE _deleted")
    assert deleted == [{"name": "customer 3", "city": "city 3", "_deleted": True}]
    assert "3 tables, 53 rows, identical" in tributary.run("reconcile")


@pytest.mark.long
def test_a_paused_table_stays_as_it_is_beside_a_running_ingest_until_it_is_resumed(
    tributary: Tributary,
) -> None:
    def amount() -> str:
        return str(tributary.json("query", "SELECT amount FROM orders WHERE id = 30")[0]["amount"])

    def city() -> str:
        return str(tributary.json("query", "SELECT city FROM customers WHERE name = 'customer 6'")[0]["city"])

    before, told = city(), tributary.run("pause", "customers")
    assert "tributary resume shop.public.customers" in told
    assert tributary.json("pause", "public.customers") == []
    process = tributary.start("ingest", "--follow", "--json")
    try:
        with tributary.connect() as connection:
            connection.execute("UPDATE customers SET city = 'Bonn' WHERE name = 'customer 6'")
            connection.execute("UPDATE orders SET amount = 7 WHERE id = 30")
        wait_until(lambda: amount() == "7.00", "the table that is not paused")
        tributary.run("pause", "orders")
        wait_until(lambda: _states(tributary)["customers"]["events_behind"] == 1, "the paused table's event")
        assert _states(tributary)["customers"]["state"] == "paused"
        assert all(one["paused_since"] for one in tributary.json("tables") if one["rows"])
        assert "is paused since" in tributary.run("status")
        told = tributary.run("reconcile", status=1)
        assert "shop.public.customers: cannot be compared: it is paused" in " ".join(told.split())
        assert city() == before
        assert tributary.json("resume", "public.*") == ["shop.public.customers", "shop.public.orders"]
        wait_until(lambda: city() == "Bonn", "the resumed table")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    events = [
        report for report in map(json.loads, output.splitlines()) if report["event"] in ("paused", "resumed")
    ]
    assert events[0] == {"event": "paused", "table": "shop.public.customers"}
    assert {"event": "resumed", "table": "shop.public.customers"} in events
    assert tributary.run("resume", "customers") == "None of them was paused.\n"
    assert tributary.json("reconcile")["identical"]


def test_tables_and_history_show_rows_positions_and_commits(tributary: Tributary) -> None:
    tables = {table["table"]: table for table in tributary.json("tables")}
    rows = tributary.json("query", "SELECT count(*) AS n FROM customers WHERE NOT _deleted")
    assert tables["shop.public.customers"]["rows"] == rows[0]["n"]
    commits = tributary.json("history", "orders")
    assert commits[0]["positions"] == tables["shop.public.orders"]["positions"]
    assert commits[-1]["events"] == sum(commits[-1]["positions"].values()) == 50
    assert len(commits[-1]["positions"]) == PARTITIONS
    assert "20" in tributary.run("history", "public.orders")
    assert "merge on read" in tributary.run("tables")


def test_a_table_without_rows_is_named_in_lists_and_answers(tributary: Tributary) -> None:
    name = "shop.public.nothing_yet"
    listed = {table["table"]: table for table in tributary.json("tables")}
    assert listed[name] == {"table": name, "state": "no row yet", "rows": 0}
    assert f"Without a row so far, so not in the lake yet: {name}." in tributary.run("tables")
    refused = " ".join(tributary.run("query", "SELECT * FROM nothing_yet", status=1).split())
    assert f"The lake has no table 'nothing_yet' yet: found {name} has not had a row." in refused


def test_a_table_is_exported_as_it_was(tributary: Tributary, tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    first = tributary.json("history", "orders")[-1]["instant"]
    condition = ("--where", "id <= 2 OR id = 6", "--as-of", first)
    told = tributary.run("export", "orders", "--to", "json", "--plain", "--out", str(path), *condition)
    assert f"3 rows of shop.public.orders are in {path}." in told
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["id"]: row["amount"] for row in rows} == {1: "1.10", 2: "2.20", 6: "6.60"}
    assert "_op" not in rows[0]


def test_an_unreadable_event_is_in_quarantine_with_its_bytes_and_harms_nothing(tributary: Tributary) -> None:
    _quarantine_one_event(tributary)

    (event,) = tributary.json("quarantine", "list")
    assert base64.b64decode(event["value"]) == b"\xffnot JSON"
    assert (event["table"], event["topic"]) == ("shop.public.orders", ORDERS_TOPIC)
    assert event["reason"] in tributary.run("quarantine", "show", "orders", event["position"])
    assert "0:999" in tributary.run("quarantine", "show", "orders", "0:999", status=1)
    assert tributary.json("reconcile")["identical"]
    replayed = tributary.run("quarantine", "replay", "orders").split()
    assert replayed[-3:] == ["shop.public.orders", "0", "1"]
    assert len(tributary.json("quarantine", "list")) == 1


def _quarantine_one_event(tributary: Tributary) -> None:
    producer = Producer({"bootstrap.servers": tributary.workspace.settings.kafka_bootstrap})
    producer.produce(ORDERS_TOPIC, key=b'{"id": 1}', value=b"\xffnot JSON")
    assert producer.flush(30) == 0
    tributary.run("ingest", "--tables", "orders")


@pytest.fixture
def with_one_quarantined_event(tributary: Tributary) -> None:
    """Have one, also if an earlier test was left out."""
    if not tributary.json("quarantine", "list"):
        _quarantine_one_event(tributary)


def test_mistakes_are_reported_in_one_paragraph(tributary: Tributary) -> None:
    assert "Did you mean shop.public.orders?" in tributary.run("query", "SELECT * FROM oders", status=1)
    assert "Did you mean shop.public.customers?" in tributary.run("history", "custmers", status=1)
    assert "Did you mean shop.public.orders?" in tributary.run("ingest", "--tables", "ordrs", status=1)
    assert "syntax error" in tributary.run("query", "SELEC", status=1)
    assert "wait longer with --wait" in tributary.run("ingest", "--wait", "0.001", status=1)


BOARD = """
title = "Orders <script>document.title = 'owned'</script>"
refresh = "2s"

[[tile]]
title = "By customer"
chart = "bar"
x = "name"
y = "n"
sql = "SELECT '<script>alert(1)</script>' || customer AS name, count(*) AS n FROM orders GROUP BY ALL"

[[tile]]
title = "Customers"
chart = "number"
value = "n"
unit = "in the cities"
sql = "SELECT count(DISTINCT city) AS n FROM customers WHERE name LIKE 'customer 6%'"

[[tile]]
title = "A first look"
chart = "table"
as_of = "INSTANT"
sql = "SELECT count(*) || ' orders at first' AS n FROM orders"

[[tile]]
title = "A file"
chart = "table"
sql = "SELECT * FROM read_csv('/etc/passwd')"
"""


def _see_boards(tributary: Tributary, walk: Walk) -> None:
    """A board shows texts of the lake as texts, follows the lake, and reads no file."""
    folder = tributary.lake_file.parent / "boards"
    folder.mkdir()
    first = tributary.json("history", "orders")[-1]["instant"]
    folder.joinpath("orders.toml").write_text(BOARD.replace("INSTANT", first))
    texts = [
        "<script>document.title",
        "1 in the cities",
        "50 orders at first",
        "neither use files nor reach the network",
    ]
    pages.see_a_board(walk, "Orders", texts=texts, charts=1)
    said = tributary.run("boards", "check", "--run", status=1)
    assert "tile 4 (A file)" in said
    assert "neither use files nor reach the network" in said
    assert "tile 1" not in said

    def set_city(city: str | None) -> None:
        with tributary.connect() as connection:
            connection.execute("UPDATE customers SET city = %s WHERE name = 'customer 6'", (city,))
        tributary.run("ingest", "--tables", "customers")

    number = ("0 in the cities", "1 in the cities")
    pages.follow_a_number(walk, "/board/orders", number[1], number[0], lambda: set_city(None))
    set_city("city 6")


def test_a_browser_shows_the_pipeline_its_tables_a_row_and_what_is_wrong(tributary: Tributary) -> None:
    wait_until(
        lambda: [one["op"] for one in tributary.json("events", "orders", "1")] == ["c", "u", None],
        "three events of a row in bronze",
    )
    with served(tributary.lake_file, tributary.state) as address, chromium() as browser:
        walk = Walk(address, browser)

        pages.see_the_pipeline(walk, "shop (PostgreSQL)", needs="All is well")
        pages.go_from_the_grid_to_a_table(walk, "shop.public.orders")
        life = ["created", "updated", "unreadable", "txId"]
        pages.follow_a_row(walk, "shop.public.orders", "1", life, "The row, as it was since")
        pages.find_the_quarantined_event(walk, "not_utf8", "not JSON")
        pages.ask(walk, "SELECT count(*) * 1000 AS n FROM customers", "7000")
        pages.ask(walk, "SELECT * FROM read_csv('/etc/passwd')", "neither use files nor reach the network")
        pages.ask(walk, "SELECT '<script>document.title = \"owned\"</script>' AS x", "<script>")
        pages.ask(walk, "DROP TABLE customers", "A query cannot change anything: found DROP")
        pages.ask_by_keyboard(walk, "SELECT count(*) * 1000 AS n FROM customers", "7000")
        pages.save_an_answer(walk)
        pages.miss_a_page(walk)
        pages.complete_a_name(walk, "cit", "city")
        pages.draw_an_answer(walk, "SELECT city, count(*) AS n FROM customers GROUP BY ALL")
        _see_boards(tributary, walk)
        pages.fit_on_a_phone(walk, "shop.public.orders")
        pages.read_every_text(walk, "shop.public.orders")

        pages.reach_a_table_by_keyboard(walk, "shop.public.orders")
        pages.see_the_alerts(walk, "quarantine", "0 events", "blocked")
        pages.search_a_log(walk, "postgres", "SYSTEM IS READY", found="ready to accept connections")

        orders = "/table/shop.public.orders"
        pages.change_your_mind(walk, orders, "Pause")
        pages.press(walk, orders, "Pause", ends_with="shop.public.orders is paused.")
        assert _states(tributary)["orders"]["state"] == "paused"
        pages.press(walk, orders, "Resume", ends_with="shop.public.orders continues.")
        assert _states(tributary)["orders"]["state"] == "well"
        _see_a_dead_kafka(tributary, walk)

        assert walk.problems == []
        metrics = requests.get(f"{address}/metrics", timeout=30).text
        assert 'tributary_table_events_behind{table="shop.public.orders"}' in metrics
        # Neither a page nor the way by which buttons talk to the console.
        for path in ("", "/_nicegui_ws/socket.io/?EIO=4&transport=polling"):
            for origin, status in (("http://evil.example", 403), (address, 200)):
                found = requests.get(f"{address}{path}", headers={"Origin": origin}, timeout=30)
                assert found.status_code == status, (path, origin)
    with served(tributary.lake_file, tributary.state, "--read-only") as address, chromium() as browser:
        pages.find_no_button(Walk(address, browser), "/table/shop.public.orders")


@pytest.mark.long
@pytest.mark.usefixtures("with_one_quarantined_event")
def test_buttons_that_start_spark_do_what_their_commands_do(tributary: Tributary) -> None:
    with served(tributary.lake_file, tributary.state) as address, chromium() as browser:
        walk, orders = Walk(address, browser), "/table/shop.public.orders"
        pages.press(walk, orders, "Verify", ends_with="equals its source as of")
        pages.press(walk, orders, "Read again", ends_with="shop.public.orders was read again.")
        pages.press(walk, "/quarantine", "Replay", ends_with="0 applied, 1 left in quarantine")
        assert walk.problems == []
    tributary.run("ingest")
    assert _states(tributary)["orders"]["state"] == "well"


def _see_a_dead_kafka(tributary: Tributary, walk: Walk) -> None:
    (kafka,) = [one for one in tributary.json("status")["services"] if one["name"] == "kafka"]
    psutil.Process(kafka["pid"]).kill()
    pages.see_what_is_wrong(walk, "kafka", "The server died.")
    tributary.run("up")
    pages.see_that_all_is_well(walk)


@pytest.mark.long
@pytest.mark.usefixtures("with_one_quarantined_event")
def test_start_follows_and_serves_and_mends_and_stops_it_all(tributary: Tributary) -> None:
    tributary.run("down")
    port = free_port()
    with webhook() as (url, got):
        output, errors = _start_and_stop(tributary, port, url)
    assert got[0][1]["text"].startswith(
        "*[cli-test] shop.public.orders: quarantine*\n1 event is in quarantine"
    )
    assert f"The console is at http://127.0.0.1:{port}" in output
    assert "2 of 2 tables are in the lake." in output
    assert "The ingest has ended" in errors
    assert "It starts again in" in errors
    assert "Traceback" not in errors
    assert {one["state"] for one in tributary.json("status", status=1)["services"]} == {"stopped"}
    (alert,) = tributary.json("alerts")
    assert (alert["channel"], alert["rule"]) == ("webhook", "quarantine")
    tributary.run("up")


def _start_and_stop(tributary: Tributary, port: int, url: str) -> tuple[str, str]:
    """Let `tributary start` follow, rebuild, and survive the death of Spark. Return what it has said."""
    process = tributary.start("start", "--port", str(port), TESTS_WEBHOOK=url)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(address), "the console of tributary start")
        with tributary.connect() as connection:
            connection.execute("UPDATE customers SET city = 'Ulm' WHERE name = 'customer 6'")
        question = "SELECT city FROM customers WHERE name = 'customer 6'"
        wait_until(lambda: tributary.json("query", question) == [{"city": "Ulm"}], "the updated row")
        with chromium() as browser:
            customers = "/table/shop.public.customers"
            pages.press(Walk(address, browser), customers, "Rebuild", ends_with="customers has 7 rows")
        wait_until(lambda: bool(_spark_processes(tributary.state)), "the ingest after the rebuild")
        (first, *_) = _spark_processes(tributary.state)
        for one in _spark_processes(tributary.state):
            one.kill()
        with tributary.connect() as connection:
            connection.execute("UPDATE customers SET city = 'Jena' WHERE name = 'customer 6'")
        wait_until(lambda: tributary.json("query", question) == [{"city": "Jena"}], "the row after a crash")
        assert not first.is_running()
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    return output, errors


def test_down_and_up_keep_everything(tributary: Tributary) -> None:
    question = "SELECT count(*) AS n, sum(amount) AS amount FROM orders"
    before = tributary.json("query", question)
    tributary.run("down")
    assert "tributary up" in tributary.run("query", question, status=1)
    assert not tributary.json("status", status=1)["is_well"]
    tributary.run("up")
    assert "was up already" in tributary.run("up")
    assert tributary.json("query", question) == before
    assert tributary.json("status")["is_well"]
    assert tributary.json("reconcile")["identical"]


def test_a_table_continues_from_kafka_where_bronze_ended_even_if_kafka_lost_the_rest(
    tributary: Tributary,
) -> None:
    _remove_from_silver(tributary, "orders")
    tributary.run("ingest", "--from", "bronze", "--tables", "orders")
    (commit,) = tributary.json("history", "orders")
    assert sum(commit["positions"].values()) > 50
    (latest, *_) = tributary.json("history", "customers")
    _remove_from_silver(tributary, "customers")
    _let_kafka_forget(tributary, "cli-test.shop.public.customers")

    with tributary.connect() as connection:
        connection.execute("UPDATE orders SET amount = amount + 1 WHERE id > 30")
        connection.execute("DELETE FROM orders WHERE id = 33")
    process = tributary.start("ingest", "--follow")
    try:
        assert tributary.json("reconcile", "--wait", "600")["identical"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    assert tributary.json("history", "orders")[-1]["positions"] == commit["positions"]
    assert tributary.json("history", "customers")[0]["positions"] == latest["positions"]


def test_a_table_blocked_by_a_changed_type_shows_it_until_a_rebuild(tributary: Tributary) -> None:
    (before, *_) = tributary.json("history", "orders")
    question = "SELECT amount FROM orders WHERE id = 40"
    as_it_is = tributary.json("query", question)
    assert tributary.json("query", "--as-of", before["instant"], question) == as_it_is
    with tributary.connect() as connection:
        connection.execute("ALTER TABLE orders ALTER COLUMN amount TYPE text")
        connection.execute("UPDATE orders SET amount = 'a lot' WHERE id = 40")
    wait_for_topic(tributary, "orders", 1)
    assert _states(tributary)["orders"]["state"] == "waiting"
    assert "tributary rebuild" in tributary.run("ingest", status=1)
    assert "column amount" in tributary.run("status", status=1)
    blocked, well = _states(tributary, status=1)["orders"], _states(tributary, status=1)["customers"]
    assert (blocked["state"], well["state"]) == ("blocked", "well")
    # The update, and all rows, which are read again: ALTER TYPE has written them without an event.
    assert blocked["events_behind"] > 1
    assert "found string, expected decimal(10,2)" in blocked["reason"]
    assert "tributary rebuild" in blocked["remedy"]

    with served(tributary.lake_file, tributary.state) as address, chromium() as browser:
        walk = Walk(address, browser)
        pages.see_what_is_wrong(walk, "shop.public.orders", "found string, expected decimal(10,2)")
        pages.read_every_text(walk, "shop.public.orders")
        pages.press(walk, "/table/shop.public.orders", "Rebuild", ends_with="shop.public.orders has")
        assert walk.problems == []
    tributary.run("ingest")  # The snapshot of the rewritten rows ends.

    assert (_states(tributary)["orders"]["state"], _states(tributary)["orders"]["events_behind"]) == (
        "well",
        0,
    )
    assert tributary.json("query", question) == [{"amount": "a lot"}]
    assert "Spark SQL" in tributary.run("query", "--as-of", before["instant"], question, status=1)
    assert "no commit yet" in tributary.run("query", "--as-of", "2001-01-01", question, status=1)
    assert "neither an instant nor a time" in tributary.run("query", "--as-of", "noon", question, status=1)
    assert tributary.json("reconcile")["identical"]


def _states(tributary: Tributary, status: int = 0) -> dict[str, dict[str, Any]]:
    tables = tributary.json("status", status=status)["tables"]
    return {table["table"].removeprefix("shop.public."): table for table in tables}


def test_reconcile_names_exactly_the_rows_that_were_falsified_in_the_lake(tributary: Tributary) -> None:
    _forge(tributary, 20, _with_amount_changed)
    _forge(tributary, 21, _deleted)
    _forge(tributary, 22, _under_another_key)
    tributary.run("ingest")

    found = tributary.json("reconcile", status=1)

    (orders,) = (table for table in found["tables"] if not table["identical"])
    assert orders["table"] == "shop.public.orders"
    assert orders["differences"] == [
        {
            "key": {"id": "20"},
            "kind": "changed",
            "cells": {"amount": {"database": "'22.00'", "lake": "'0.01'"}},
        },
        {"key": {"id": "21"}, "kind": "missing", "cells": {}},
        {"key": {"id": "4711"}, "kind": "extra", "cells": {}},
    ]
    told = tributary.run("reconcile", status=1)
    assert "(id=20) is different in the lake: amount is '22.00' in the database, '0.01' in the lake" in told
    assert "3 tables, 52 rows, 1 table is not identical" in told


@pytest.mark.long
def test_a_bucket_from_another_sink_becomes_tables_that_continue_with_its_next_files(
    tributary: Tributary, tmp_path: Path
) -> None:
    things = SourceTable()
    things.begin()
    for key in range(1, 6):
        things.insert(key, f"row {key}", None)
    things.commit()
    first = len(things.events)
    things.begin()
    things.delete(2)
    things.update(3, "changed", None, body_is_unchanged=False)
    things.commit()
    values = [event.value for event in things.events]
    # The sink drops this record, but the record takes an offset.
    tombstones = values[first:].count(None)
    lake_file = tmp_path / "lake.toml"
    lake_file.write_text(
        f"{LAKE}\n[source.shop.events]\ntopic_prefix = 'elsewhere'\n"
        "[table.'shop.public.things']\nkey = ['id']\nstorage = 'copy_on_write'\n"
    )
    as_of_another_sink = Tributary(lake_file, tributary.state)
    bucket = "somebodys-sink"
    s3_of(tributary).create_bucket(Bucket=bucket)
    run = ("ingest", "--from", f"files:s3://{bucket}/topics")

    for start, until in ((0, first), (first, len(values))):
        lines = b"".join(value + b"\n" for value in values[start:until] if value is not None)
        name = f"topics/elsewhere.public.things/partition=0/elsewhere.public.things+0+{start:010}.json.gz"
        s3_of(tributary).put_object(Bucket=bucket, Key=name, Body=gzip.compress(lines))
        as_of_another_sink.run(*run)

    found = as_of_another_sink.json("query", "SELECT id, name FROM things ORDER BY id")
    assert found == [{"id": key, "name": row["name"]} for key, row in sorted(things.rows.items())]
    commits = as_of_another_sink.json("history", "things")
    assert [commit["positions"]["0"] for commit in commits] == [len(values) - tombstones, first]
    as_of_another_sink.run(*run)
    assert as_of_another_sink.json("history", "things") == commits
    missing = as_of_another_sink.run("ingest", "--from", "files:s3://somebodys-sink/nothing", status=1)
    assert "There are no files of events" in missing
