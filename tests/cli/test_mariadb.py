"""A real MariaDB passes through the whole pipeline: every type, random transactions, and DDL in between."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import boto3
import psutil
import pymysql
import pytest

from connectors.connect_rest import ConnectRest
from connectors.engines.binlog.session import Session, execute
from tests.aws_double import running_moto
from tests.cli.test_every_type import differences
from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until
from tributary.contract.lake import read_lake
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local import mariadb
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down, up
from tributary.local.process import read_process
from tributary.local.state import StateFolder
from tributary.operations.aws import linked_lake
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.linked_lake import login_of
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.snapshots.asking import read_again
from tributary.operations.stored_offsets import stored_offsets
from tributary.operations.verify.rounds import VerifyKeeper, Wanted
from tributary.operations.whole_lake import reconcile_links

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LAKE = """
[lake]
name = "maria"

[source.shop]
engine = "mariadb"
tables = ["shop.*"]
partitions = 2

[table."shop.shop.soft"]
deletes = "soft"

[table."shop.shop.copied"]
storage = "copy_on_write"
"""
VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    "flag": ("boolean", ("true", "false")),
    "int_1": ("tinyint", ("-128", "127")),
    "int_1u": ("tinyint unsigned", ("255",)),
    "int_2": ("smallint", ("-32768", "32767")),
    "int_3": ("mediumint unsigned", ("16777215",)),
    "int_4": ("int", ("-2147483648", "2147483647")),
    "int_4u": ("int unsigned zerofill", ("4294967295", "7")),
    "int_8": ("bigint", ("9223372036854775807", "-9223372036854775808")),
    "int_8u": ("bigint unsigned", ("18446744073709551615", "0", "9223372036854775808")),
    "float_4": ("float", ("0.5", "-1.25", "1.5e30")),
    "float_8": ("double", ("0.1", "1.7976931348623157e308", "5e-324", "-0.30000000000000004")),
    "decimal_10": ("decimal(10, 2)", ("0", "1.50", "-99999999.99")),
    "decimal_38": ("decimal(38, 10)", ("-1234567890123456789012345678.0123456789",)),
    "decimal_65": (
        "decimal(65, 30)",
        ("12345678901234567890123456789012345.012345678901234567890123456789",),
    ),
    "decimal_u": ("numeric(5) unsigned", ("12345",)),
    "varied": ("varchar(20)", ("'x  '", "''", "'😀é'")),
    "latin": ("varchar(20) character set latin1", ("'é€'",)),
    "padded": ("char(5)", ("'ab'", "''")),
    "words": ("text", ("''", r"'😀 \t\r\n\\ \" '", "'null'")),
    "long_words": ("longtext", ("repeat('é', 70000)",)),
    "document": ("json", ("""'{"b" : 1,  "a": [1.0, null, "é"]}'""", "'null'")),
    "fixed": ("binary(4)", ("x'00ff'", "x'01020304'")),
    "raw": ("varbinary(20)", ("''", "x'00ff1000'")),
    "blob_": ("blob", ("x'00ff'",)),
    "one_bit": ("bit(1)", ("b'1'", "b'0'")),
    "bits": ("bit(10)", ("b'1000000001'", "b'0'")),
    "bits_64": ("bit(64)", ("x'ffffffffffffffff'", "b'1'")),
    "mood": ("enum('happy', 'O''Brien, x', '')", ("'happy'", "'O''Brien, x'", "''")),
    "tags": ("set('a', 'b c', 'd')", ("''", "'a,d'", "'b c'")),
    "year_": ("year", ("2024", "1901", "2155")),
    "day": ("date", ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'")),
    "moment_0": ("datetime", ("'2024-02-29 12:34:56'", "'1000-01-01 00:00:00'")),
    "moment_3": ("datetime(3)", ("'2024-02-29 12:34:56.789'", "'1969-12-31 23:59:59.999'")),
    "moment_6": ("datetime(6)", ("'9999-12-31 23:59:59.999999'", "'0001-01-01 00:00:00.000001'")),
    "zoned": ("timestamp(6) null", ("'2024-02-29 12:34:56.123456'", "'1970-01-01 00:00:01'")),
    "clock_0": ("time", ("'838:59:59'", "'-838:59:59'", "'00:00:00'")),
    "clock_6": ("time(6)", ("'12:34:56.123456'", "'-00:00:00.000001'", "'100:00:00.5'")),
    "token": ("uuid", ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",)),
    "sum_": ("int as (int_1 + 1) stored", ()),
    "spot": ("point", ("point(1.5, -2)",)),
}
"""Columns, their types, and values for them. A column without values is generated."""
NOT_COMPARED = {"spot"}
ROWS = max(len(values) for _, values in VALUES.values())
OF_TRANSACTIONS = ("hard", "soft", "copied")
LEFT_OUT = ("in_memory", "no_key", "child")


def insert_values(session: Session, first_id: int) -> None:
    names = ["id", *(name for name, (_, values) in VALUES.items() if values)]
    for number in range(ROWS):
        row = [values[number] if number < len(values) else "NULL" for _, values in VALUES.values() if values]
        row = [str(first_id + number), *row]
        execute(session, f"INSERT INTO things ({', '.join(names)}) VALUES ({', '.join(row)})")


def set_up(_: Source, session: Session) -> None:
    """Create the tables, and the rows that the first snapshot finds."""
    session.select_db("shop")
    columns = ", ".join(f"{name} {ddl}" for name, (ddl, _) in VALUES.items())
    execute(session, f"CREATE TABLE things (id int PRIMARY KEY, {columns})")
    insert_values(session, 0)
    for table in OF_TRANSACTIONS:
        execute(
            session,
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, name varchar(50) NOT NULL, amount decimal(12, 3), "
            "at datetime(6), body longtext)",
        )
    execute(session, "CREATE TABLE in_memory (id int PRIMARY KEY) ENGINE = MEMORY")
    execute(session, "CREATE TABLE no_key (id int)")
    execute(
        session,
        "CREATE TABLE child (id int PRIMARY KEY, parent int, "
        "FOREIGN KEY (parent) REFERENCES things (id) ON DELETE CASCADE)",
    )


class Maria(Tributary):
    """The installed command on a lake of MariaDB."""

    def verified(self) -> list[dict[str, Any]]:
        """Verify all rows, once no table is read again because of a change without an event."""
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            found = self.json("verify", "--full", status=None)
            if not any(one["problem"] == "it is being read again" for one in found):
                break
            time.sleep(2)
        return found

    def until_identical(self) -> Any:
        """Reconcile until what no event told of has been read again. Return the last proof."""
        found: dict[str, Any] = {}

        def is_identical() -> bool:
            nonlocal found
            found = self.json("reconcile", "--wait", "600", status=None)
            # A table that is left out never is.
            return all(table["identical"] for table in found["tables"] if table["problem"] is None)

        with suppress(AssertionError):
            wait_until(is_identical, "proof", patience_seconds=240, poll_seconds=5)
        return found

    def session(self) -> Session:
        workspace = self.workspace
        (source,) = workspace.lake.sources
        database = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings)
        session: Session = database.connect()
        session.select_db("shop")
        return session


@pytest.fixture(scope="module")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maria]:
    """A pipeline whose database already had rows when it was first read."""
    folder = tmp_path_factory.mktemp("maria")
    command = Maria(folder / "lake.toml", folder / "state")
    command.lake_file.write_text(LAKE)
    state = StateFolder(command.state)
    try:
        up(read_lake(command.lake_file), state, seed=set_up)
        yield command
    finally:
        down(state)
        shutil.rmtree(command.state, ignore_errors=True)


def test_the_lake_equals_mariadb_after_every_type_and_random_transactions_with_ddl(maria: Maria) -> None:
    chance = random.Random(20_262)
    with maria.session() as session:
        insert_values(session, 100)
        insert_values(session, 200)
        for name, (_, values) in VALUES.items():
            if values:
                execute(session, f"UPDATE things SET {name} = {values[-1]} WHERE id >= 200")
        transact(session, chance, 40)
        execute(session, "TRUNCATE copied")
        transact(session, chance, 20)
    process = maria.start("ingest", "--follow", "--json")
    try:
        with maria.session() as session:
            transact(session, chance, 20)
            execute(session, "ALTER TABLE hard ADD COLUMN extra varchar(10), MODIFY amount decimal(20, 5)")
            execute(session, "UPDATE hard SET extra = 'x' WHERE id < 5")
            execute(session, "CREATE TABLE later (id int PRIMARY KEY, note text)")
            execute(session, "INSERT INTO later VALUES (1, 'first'), (2, NULL)")
            transact(session, chance, 20)
            # Then the definitions have been looked at.
            first = maria.json("reconcile", "--wait", "600", status=None)
            execute(session, "REPLACE INTO soft (id, name) VALUES (500, 'goes'), (501, 'stays')")
            execute(session, "DELETE FROM soft WHERE id = 500")
            # No row event reports these.
            execute(session, "ALTER TABLE soft ADD COLUMN kind varchar(10) NOT NULL DEFAULT 'old'")
            execute(session, "ALTER TABLE copied RENAME COLUMN body TO content")
        found = maria.until_identical()
        verified = maria.verified()
        listed = maria.json("tables")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)

    assert process.returncode == 130, errors
    assert differences(first) == [], output
    assert differences(found) == [], output
    assert {name for table in found["tables"] for name in table["uncompared_columns"]} == NOT_COMPARED
    compared = {table["table"]: table["identical"] for table in found["tables"] if table["problem"] is None}
    assert compared == {f"shop.shop.{name}": True for name in ("things", "later", *OF_TRANSACTIONS)}
    assert {one["table"] for one in verified if one["problem"] is None} == compared.keys(), verified
    assert [one["examples"] for one in verified if one["differences"] or one["rows_in_flight"]] == []
    assert sum(one["rows_verified"] for one in verified) == found["rows"]
    assert maria.json("quarantine", "list") == []
    left_out = {one["table"] for one in listed if one.get("state") == "left out"}
    assert left_out == {f"shop.shop.{name}" for name in LEFT_OUT}


def test_a_snapshot_and_the_log_give_the_same_values(maria: Maria) -> None:
    columns = ", ".join(VALUES)
    rows = {
        first: maria.json(
            "query", f"SELECT {columns} FROM things WHERE id BETWEEN {first} AND {first + 99} ORDER BY id"
        )
        for first in (0, 100)
    }

    assert len(rows[0]) == ROWS
    assert rows[0] == rows[100]


def test_soft_deleted_rows_stay_in_the_lake_and_are_marked(maria: Maria) -> None:
    found = maria.json("query", "SELECT id, _deleted FROM soft WHERE id IN (500, 501) ORDER BY id")

    assert found == [{"id": 500, "_deleted": True}, {"id": 501, "_deleted": False}]


@pytest.fixture
def s3_with_locks(maria: Maria) -> Iterator[S3Client]:
    """S3 with conditional writes, which the local one has not, for the locks in the lake's quarantine."""
    bucket = maria.workspace.open_lake.quarantine.split("/")[0]
    with running_moto() as url:
        client = boto3.client(
            "s3", "us-east-1", endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="x"
        )
        client.create_bucket(Bucket=bucket)
        yield client


def test_a_deployed_lake_is_compared_by_its_connectors_config_and_the_offsets_in_kafka(
    maria: Maria, s3_with_locks: S3Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts are those of this machine, but what is asked of AWS. The database here has no encryption."""
    workspace = maria.workspace
    (source,) = workspace.lake.sources
    connect = ConnectRest(workspace.settings.connect_url)
    connector = workspace.lake.source_names(source).connector
    config = connect.config(connector)
    assert config is not None
    password = workspace.settings.secrets.replication_password("shop").get_secret_value()
    secrets = {"tributary/maria/shop": json.dumps({"password": password})}
    session = SimpleNamespace(
        region="eu-west-1",
        s3=s3_with_locks,
        secretsmanager=SimpleNamespace(
            get_secret_value=lambda **asked: {"SecretString": secrets[asked["SecretId"]]}
        ),
    )
    deployed = cast(DeployedLake, SimpleNamespace(lake=workspace.lake, session=session))
    on_aws = {**config, "database.password": "${secretsmanager:tributary/maria/shop:password}"}
    monkeypatch.setattr(linked_lake, "read_config", lambda *_: on_aws)
    monkeypatch.setattr(linked_lake, "login_of", lambda *found: replace(login_of(*found), encryption=None))

    # On AWS, each source has workers of its own.
    topic = workspace.lake.names.connect_offsets_topic
    monkeypatch.setattr(linked_lake, "stored_offsets", lambda kafka, _: stored_offsets(kafka, topic))

    with linked_lake.linked_lake(deployed, workspace.open_lake, workspace.kafka, workspace.state) as lake:
        (link,) = lake.links()
        assert link.read_offset() == connect.offset(connector)
        found = reconcile_links(lake.links(), (), lambda: Patience.of(120))
        later = connect.offset(connector)
        wait_until(lambda: link.read_offset() == later, "what Connect has stored since")
        followed = {"things", "later", *OF_TRANSACTIONS}
        names = {TableName("shop", "shop", table) for table in followed}
        verified = VerifyKeeper(lake, print).step(Wanted(names, None))
        again = read_again(lake, ["shop.shop.later"], print, print)

    assert {table.name.table for table in found.tables if table.identical} >= followed
    assert found.rows > ROWS
    assert (again.tables, again.failed) == ((TableName("shop", "shop", "later"),), {})
    assert {name: (one.problem, one.differences) for name, one in verified.items()} == dict.fromkeys(
        names, (None, 0)
    )


def test_no_password_is_in_an_argument_or_a_log(maria: Maria) -> None:
    secrets = maria.workspace.settings.secrets
    passwords = [
        password.get_secret_value()
        for password in (secrets.mariadb_admin, secrets.replication_password("shop"))
    ]
    record = read_process(mariadb.SERVICE, maria.workspace.state.run)
    assert record is not None
    shown = [" ".join(psutil.Process(record.pid).cmdline())]
    shown += [log.read_text(errors="replace") for log in maria.workspace.state.logs.glob("*.log")]
    assert len(shown) > 5
    assert not [password for password in passwords if any(password in text for text in shown)]


def transact(session: Session, chance: random.Random, transactions: int) -> None:
    for _ in range(transactions):
        session.begin()
        table = chance.choice(OF_TRANSACTIONS)
        for _ in range(chance.randint(1, 5)):
            change(session, table, chance)
        session.rollback() if chance.random() < 0.1 else session.commit()


CHANGES = ("insert", "insert", "insert", "replace", "update", "update", "delete", "move", "swap")


def change(session: Session, table: str, chance: random.Random) -> None:
    key = chance.randint(1, 12)
    name, amount = f"name {chance.random()}", chance.randint(-(10**9), 10**9) / 1000
    match chance.choice(CHANGES):
        case "insert":
            statement = f"INSERT IGNORE INTO {table} (id, name, amount, at) VALUES (%s, %s, %s, now(6))"
            execute(session, statement, (key, name, amount))
        case "replace":
            execute(session, f"REPLACE INTO {table} (id, name) VALUES (%s, %s)", (key, name))
        case "update":
            statement = f"UPDATE {table} SET amount = %s, name = %s WHERE id %% 3 = %s"
            execute(session, statement, (amount, name, key % 3))
        case "delete":
            execute(session, f"DELETE FROM {table} WHERE id = %s", (key,))
        case "move":
            with suppress(pymysql.err.IntegrityError):  # The key is taken.
                execute(session, f"UPDATE {table} SET id = %s WHERE id = %s", (chance.randint(1, 12), key))
        case "swap":
            other = chance.randint(1, 12)
            for new, old in ((100, key), (key, other), (other, 100)):
                if key != other:
                    execute(session, f"UPDATE {table} SET id = %s WHERE id = %s", (new, old))
