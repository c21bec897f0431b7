"""Hidden values appear nowhere behind the connector, and erased rows nowhere in the lake.

All of it on one pipeline of two databases."""

from __future__ import annotations

import hmac
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from connectors.engines.binlog.session import Session, execute
from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until
from tributary.contract.hidden_columns import MASK
from tributary.contract.lake import read_lake
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.hash_salt import hash_salt
from tributary.local.pipeline import down, up
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

LAKE = """
[lake]
name = "hidden"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]

[source.maria]
engine = "mariadb"
tables = ["shop.*"]

[table."shop.public.customers"]
leave_out = ["ssn"]
mask = ["phone", "later?"]
hash = ["email", "bio", "number"]
rows = "country = 'DE'"

[table."maria.shop.people"]
leave_out = ["ssn"]
mask = ["phone"]
hash = ["email", "number"]
deletes = "soft"
"""
SECRET = re.compile(rb"hush|987654")
"""What the hidden values of all rows contain, and nothing else does."""
BIO = "hush " * 4000
"""A value that PostgreSQL keeps out of its row, and does not send again if an update leaves it alone."""


def set_up(source: Source, session: Any) -> None:
    """Create the tables, and the rows that the first snapshot finds."""
    if source.name == "maria":
        session.select_db("shop")
        execute(
            session,
            "CREATE TABLE people (id int PRIMARY KEY, ssn varchar(30), phone bigint NOT NULL DEFAULT 5, "
            "email varchar(40), number bigint, note text)",
        )
        rows = [f"({i}, 'hush {i}', 98765400 + {i}, 'hush{i}@x', 98765400 + {i}, 'note')" for i in range(5)]
        execute(session, f"INSERT INTO people VALUES {', '.join(rows)}")
        return
    session.execute(
        "CREATE TABLE customers (id int PRIMARY KEY, country text, ssn text NOT NULL DEFAULT 'hush', "
        "phone bigint DEFAULT 98765400, email text, bio text, number bigint, note text)"
    )
    session.execute("ALTER TABLE customers ALTER bio SET STORAGE EXTERNAL, REPLICA IDENTITY FULL")
    for i in range(6):
        insert_customer(session, i, "DE" if i % 2 == 0 else "FR")


def insert_customer(session: psycopg.Connection, number: int, country: str) -> None:
    # The note of a row that must not leave the database is secret, too.
    note = "note" if country == "DE" else "hush"
    session.execute(
        "INSERT INTO customers VALUES (%s, %s, 'hush', 98765400, %s, %s, %s, %s)",
        (number, country, f"hush{number}@x", f"{BIO}{number}", 98765400 + number, note),
    )


def change_customers(session: psycopg.Connection) -> None:
    for number in range(10, 16):
        insert_customer(session, number, "DE" if number % 2 == 0 else "FR")
    for statement in (
        "UPDATE customers SET note = 'changed' WHERE id IN (0, 10)",  # Its bio is not sent.
        "UPDATE customers SET ssn = 'hush2', phone = 9876540, email = 'hush2@x' WHERE id = 2",
        "UPDATE customers SET id = id + 100, email = email || 'hush' WHERE id IN (4, 12)",
        "UPDATE customers SET country = 'FR', note = 'hush' WHERE id = 14",  # It leaves the lake.
        "UPDATE customers SET country = 'DE', note = 'came' WHERE id = 15",  # It comes into the lake.
        "UPDATE customers SET email = NULL, bio = NULL, number = NULL WHERE id = 2",
        "DELETE FROM customers WHERE id IN (5, 10)",
        "ALTER TABLE customers ADD COLUMN later text",
        "UPDATE customers SET later = 'hush' WHERE id = 15",
    ):
        session.execute(statement.encode())


def change_people(session: Session) -> None:
    for statement in (
        "INSERT INTO people (id, ssn, email, number) VALUES (10, 'hush', 'hush10@x', -98765400), "
        "(11, NULL, NULL, NULL)",
        "UPDATE people SET ssn = 'hush2', email = 'hush2@x', note = 'changed' WHERE id = 1",
        "UPDATE people SET id = 103 WHERE id = 3",
        "REPLACE INTO people (id, ssn, email) VALUES (2, 'hush3', 'hush3@x')",
        "DELETE FROM people WHERE id = 4",
    ):
        execute(session, statement)


class Pipeline(Tributary):
    """The installed command, and its two databases."""

    def database(self, source: str) -> Any:
        workspace = self.workspace
        found = SourceDatabase(
            workspace.lake, workspace.lake.source(source), workspace.state, workspace.settings
        ).connect()
        if source == "maria":
            found.select_db("shop")
        return found

    def hashed(self, value: str) -> str:
        workspace = self.workspace
        salt = hash_salt(workspace.lake, workspace.settings).get_secret_value()
        return hmac.digest(salt.encode(), value.encode(), "sha256").hex()


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("hidden")
    command = Pipeline(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE)
    try:
        up(read_lake(command.lake_file), StateFolder(command.state), seed=set_up)
        with command.database("shop") as shop, command.database("maria") as maria:
            change_customers(shop)
            change_people(maria)
        command.run("ingest")
        # Debezium reads both tables again, between the streamed changes.
        command.run("snapshot", "customers", "people")
        with command.database("shop") as shop:
            shop.execute("UPDATE customers SET note = 'after' WHERE id = 0")
        command.run("ingest")
        yield command
    finally:
        down(StateFolder(command.state))
        shutil.rmtree(command.state, ignore_errors=True)


def test_the_lake_equals_what_may_leave_the_databases(pipeline: Pipeline) -> None:
    found = {table["table"]: table for table in pipeline.json("reconcile")["tables"]}

    assert all(table["identical"] for table in found.values()), found
    customers = found["shop.public.customers"]
    assert customers["rows"] == 5
    assert customers["left_out_columns"] == ["ssn"]
    assert customers["uncompared_columns"] == customers["dropped_columns"] == []
    told = pipeline.run("reconcile")
    assert "not compared, because the lake file leaves them out: ssn" in told


def test_verification_compares_hashes_with_rows_that_it_hashes_itself(pipeline: Pipeline) -> None:
    found = {table["table"]: table for table in pipeline.json("verify")}

    assert {name: (one["problem"], one["differences"]) for name, one in found.items()} == dict.fromkeys(
        ("shop.public.customers", "maria.shop.people"), (None, 0)
    )
    assert found["shop.public.customers"]["rows_verified"] == 5


def test_hidden_columns_hold_a_mask_a_hash_or_nothing(pipeline: Pipeline) -> None:
    columns = "id, phone, email, bio, number, note"
    rows = {row["id"]: row for row in pipeline.json("query", f"SELECT {columns} FROM customers")}

    assert sorted(rows) == [0, 2, 15, 104, 112]
    assert {row["phone"] for row in rows.values()} == {MASK}
    assert rows[0] == {
        "id": 0,
        "phone": MASK,
        "email": pipeline.hashed("hush0@x"),
        "bio": pipeline.hashed(f"{BIO}0"),
        "number": pipeline.hashed("98765400"),
        "note": "after",
    }
    assert rows[2]["email"] is rows[2]["bio"] is rows[2]["number"] is None
    people = pipeline.json("query", "SELECT id, phone, email, number FROM people ORDER BY id")
    assert people[0] == {
        "id": 0,
        "phone": MASK,
        "email": pipeline.hashed("hush0@x"),
        "number": pipeline.hashed("98765400"),
    }
    # The same value has the same hash in both sources.
    assert people[0]["email"] == rows[0]["email"]


def test_no_hidden_value_and_no_salt_is_in_kafka_bronze_silver_or_a_log(pipeline: Pipeline) -> None:
    found = list(everything_behind_the_connectors(pipeline))

    assert not {where for where, content in found if SECRET.search(content)}
    searched = {where.split(" ")[0] for where, _ in found}
    assert {"kafka", "parquet", "file"} <= searched
    # The search reads what it should.
    assert any(b"changed" in content for where, content in found if where.startswith("kafka"))
    for bucket in ("bronze", "silver"):
        assert any(b"changed" in content for where, content in found if bucket in where), bucket

    workspace = pipeline.workspace
    salt = hash_salt(workspace.lake, workspace.settings).get_secret_value().encode()
    (holding,) = [where for where, content in found if salt in content]
    path = Path(holding.removeprefix("file "))
    assert path.name == "hash-salt"
    assert path.stat().st_mode & 0o077 == 0


def test_a_column_that_is_hidden_later_is_hidden_in_the_lake_too(pipeline: Pipeline) -> None:
    more = LAKE.replace('mask = ["phone", "later?"]', 'mask = ["phone", "later?", "note"]')
    pipeline.run("ingest")
    pipeline.lake_file.write_text(
        more.replace('hash = ["email", "number"]', 'hash = ["email", "number", "note"]')
    )
    _, told = pipeline.start("up").communicate()
    assert "other columns or rows" in told
    process = pipeline.start("ingest", "--follow", "--json")
    try:
        wait_until(
            lambda: all(
                table["identical"]
                for table in pipeline.json("reconcile", "--wait", "240", status=None)["tables"]
            ),
            "the lake with hidden notes",
            patience_seconds=240,
            poll_seconds=3,
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    assert pipeline.json("query", "SELECT DISTINCT note FROM customers") == [{"note": MASK}]
    notes = pipeline.json("query", "SELECT DISTINCT note FROM people WHERE NOT _deleted AND note IS NOT NULL")
    assert {row["note"] for row in notes} == {pipeline.hashed("note"), pipeline.hashed("changed")}


def test_a_renamed_column_stops_the_connector_and_nothing_leaks(pipeline: Pipeline) -> None:
    with pipeline.database("shop") as shop:
        shop.execute("ALTER TABLE customers RENAME email TO e_mail")
        shop.execute("UPDATE customers SET e_mail = 'hush renamed' WHERE id = 0")

    def has_failed() -> bool:
        connectors = pipeline.json("status", status=None)["connectors"]
        return any("is to be masked or hashed, but it is missing" in str(one) for one in connectors)

    wait_until(has_failed, "the connector's failure", patience_seconds=120)
    told = pipeline.run("up", status=3)
    assert "email" in told
    assert "customers" in told
    pipeline.lake_file.write_text(LAKE.replace('hash = ["email", "bio"', 'hash = ["e_mail", "email?", "bio"'))
    pipeline.run("up")
    process = pipeline.start("ingest", "--follow", "--json")
    try:
        wait_until(
            lambda: all(
                table["identical"]
                for table in pipeline.json("reconcile", "--wait", "240", status=None)["tables"]
            ),
            "the lake with the renamed column",
            patience_seconds=240,
            poll_seconds=3,
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    row = pipeline.json("query", "SELECT e_mail FROM customers WHERE id = 0")
    assert row == [{"e_mail": pipeline.hashed("hush renamed")}]
    assert not {
        where for where, content in everything_behind_the_connectors(pipeline) if SECRET.search(content)
    }


def test_an_erased_row_is_in_no_file_of_the_lake_and_the_sink_goes_on(pipeline: Pipeline) -> None:
    with pipeline.database("maria") as maria:
        execute(
            maria,
            "INSERT INTO people (id, email, note) VALUES (77, 'x', 'forgetme'), (78, 'y', 'stays'), "
            "(79, 'z', 'forgetme as well')",
        )
        execute(maria, "UPDATE people SET note = 'forgetme too' WHERE id = 77")
    pipeline.run("ingest")
    refused = pipeline.run("erase", "people", "77", status=1)
    assert "still in the source" in refused
    with pipeline.database("maria") as maria:
        execute(maria, "DELETE FROM people WHERE id IN (77, 79)")
    pipeline.run("ingest")
    assert in_buckets(pipeline, b"forgetme") == {"bronze", "silver"}

    keys = pipeline.lake_file.with_name("keys.csv")
    keys.write_text("id\n79\n")
    found = pipeline.json("erase", "people", "77", "--keys", str(keys))
    assert found["keys"] == [{"id": "77"}, {"id": "79"}]
    # With the deletes' tombstones, and the soft-deleted rows.
    assert (found["events"], found["rows"], found["unknown"]) == (7, 2, [])
    assert found["remains"]["searched"] > 0
    assert in_buckets(pipeline, b"forgetme") == set()
    assert pipeline.json("events", "people", "77") == []

    # Each event is once in bronze, although the sink's coordinator starts from bronze's snapshots.
    pipeline.run("down")
    pipeline.run("up")
    with pipeline.database("maria") as maria:
        execute(maria, "UPDATE people SET note = 'goes on' WHERE id = 78")
    wait_until(lambda: len(pipeline.json("events", "people", "78")) == 2, "the sink's next events")
    pipeline.run("ingest")
    pipeline.run("rebuild", "people")
    assert all(table["identical"] for table in pipeline.json("reconcile")["tables"])


def test_maintenance_leaves_few_files_and_an_exact_lake(pipeline: Pipeline) -> None:
    files = count_of_bronze_files(pipeline)
    (report,) = pipeline.json("maintain")
    assert report["event"] == "bronze_serviced"
    with pipeline.database("maria") as maria:
        execute(maria, "UPDATE people SET note = 'after maintenance' WHERE id = 78")
    wait_until(lambda: len(pipeline.json("events", "people", "78")) >= 3, "the sink's next events")
    pipeline.run("maintain")
    assert count_of_bronze_files(pipeline) < files
    pipeline.run("ingest")

    text = pipeline.lake_file.read_text()
    pipeline.lake_file.write_text(f'{text}\n[bronze]\nretention = "1m"\n')
    wait_until(
        lambda: any(one["event"] == "trimmed" and one["events"] for one in pipeline.json("maintain")),
        "old events",
        patience_seconds=180,
        poll_seconds=20,
    )
    told = pipeline.run("rebuild", "people", status=1)
    assert "does not hold the first events" in told
    assert all(table["identical"] for table in pipeline.json("reconcile")["tables"])


def in_buckets(pipeline: Pipeline, content: bytes) -> set[str]:
    """Return the kinds of buckets with files that hold this content, also compressed."""
    found = set()
    for kind in ("bronze", "silver", "quarantine"):
        for path in (pipeline.workspace.state.s3 / "buckets").glob(f"*{kind}*/**/*"):
            if path.is_file() and content in b"".join(_contents(path)):
                found.add(kind)
    return found


def count_of_bronze_files(pipeline: Pipeline) -> int:
    return len([*(pipeline.workspace.state.s3 / "buckets").glob("*bronze*/**/*.parquet")])


def everything_behind_the_connectors(pipeline: Pipeline) -> Iterator[tuple[str, bytes]]:
    """Yield Kafka's records, all files of the S3 server, Connect's files and all logs, with their places."""
    yield from _records(pipeline)
    state = pipeline.workspace.state
    for folder in (state.s3, state.connect, state.logs):
        for path in folder.rglob("*"):
            if not path.is_file() or "plugin" in path.parts:
                continue
            for kind, content in zip(("file", "parquet"), _contents(path), strict=False):
                yield f"{kind} {path}", content


def _contents(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, and what it holds compressed."""
    yield path.read_bytes()
    if path.suffix == ".parquet" and path.stat().st_size:
        yield repr(pq.ParquetFile(path).read().to_pylist()).encode()


def _records(pipeline: Pipeline) -> Iterator[tuple[str, bytes]]:
    options = {
        "bootstrap.servers": pipeline.workspace.settings.kafka_bootstrap,
        "group.id": "search",
        "enable.auto.commit": "false",
    }
    with closing(Consumer(options)) as consumer:
        for topic, metadata in consumer.list_topics(timeout=30).topics.items():
            for partition in metadata.partitions:
                place = TopicPartition(topic, partition, 0)
                low, high = consumer.get_watermark_offsets(place, timeout=30)
                consumer.assign([TopicPartition(topic, partition, low)])
                while consumer.position([place])[0].offset < high and low < high:
                    record = consumer.poll(5)
                    if record is None or record.error():
                        break
                    headers: Any = record.headers() or ()
                    parts = [record.key(), record.value(), *(value for _, value in headers)]
                    yield f"kafka {topic}", b"\n".join(part for part in parts if isinstance(part, bytes))
