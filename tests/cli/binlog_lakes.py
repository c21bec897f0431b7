"""What the tests of real MariaDB and MySQL pipelines share: every type, random transactions, and DDL."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from connectors.engines.binlog.session import Session, execute
from tests.cli.test_every_type import differences
from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until

LAKE_TABLES = """
[table."shop.shop.soft"]
deletes = "soft"

[table."shop.shop.copied"]
storage = "copy_on_write"
"""
"""The entries of tables of the source `shop` in a lake file."""

Values = dict[str, tuple[str, tuple[str, ...]]]
VALUES: Values = {
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
    "day": ("date", ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "0")),
    "moment_0": ("datetime", ("'2024-02-29 12:34:56'", "'1000-01-01 00:00:00'")),
    "moment_3": ("datetime(3)", ("'2024-02-29 12:34:56.789'", "'1969-12-31 23:59:59.999'")),
    "moment_6": ("datetime(6)", ("'9999-12-31 23:59:59.999999'", "'0001-01-01 00:00:00.000001'")),
    "zoned": ("timestamp(6) null", ("'2024-02-29 12:34:56.123456'", "'1970-01-01 00:00:01'", "0")),
    "clock_0": ("time", ("'838:59:59'", "'-838:59:59'", "'00:00:00'")),
    "clock_6": ("time(6)", ("'12:34:56.123456'", "'-00:00:00.000001'", "'100:00:00.5'")),
    "sum_": ("int as (int_1 + 1) stored", ()),
    "spot": ("point", ("point(1.5, -2)",)),
    "unseen": ("int invisible", ("7",)),
}
"""Columns of both engines, their types, and values for them. A column without values is generated."""
ROWS = max(len(values) for _, values in VALUES.values())
OF_TRANSACTIONS = ("hard", "soft", "copied")


def insert_values(session: Session, values_of: Values, first_id: int) -> None:
    execute(session, "SET SESSION sql_mode = ''")  # Zero dates are allowed.
    names = ["id", *(name for name, (_, values) in values_of.items() if values)]
    for number in range(ROWS):
        row = [
            values[number] if number < len(values) else "NULL" for _, values in values_of.values() if values
        ]
        row = [str(first_id + number), *row]
        execute(session, f"INSERT INTO things ({', '.join(names)}) VALUES ({', '.join(row)})")


def set_up(session: Session, values_of: Values) -> None:
    """Create the tables, and the rows that the first snapshot finds.

    `no_key` is left out until it has a key."""
    session.select_db("shop")
    columns = ", ".join(f"{name} {ddl}" for name, (ddl, _) in values_of.items())
    execute(session, f"CREATE TABLE things (id int PRIMARY KEY, {columns})")
    insert_values(session, values_of, 0)
    for table in OF_TRANSACTIONS:
        execute(
            session,
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, name varchar(50) NOT NULL, amount decimal(12, 3), "
            "at datetime(6), body longtext)",
        )
    execute(session, "CREATE TABLE in_memory (id int PRIMARY KEY) ENGINE = MEMORY")
    execute(session, "CREATE TABLE no_key (id int NOT NULL)")
    execute(session, "INSERT INTO no_key VALUES (1)")
    execute(
        session,
        "CREATE TABLE child (id int PRIMARY KEY, parent int, "
        "FOREIGN KEY (parent) REFERENCES things (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    )


@dataclass(frozen=True)
class BinlogLake(Tributary):
    """The installed command on a lake of MariaDB or MySQL.

    session       opens a session of an administrator in the database `shop`
    values        the columns of the table `things`
    not_compared  its columns that have no exact common form
    left_out      the tables that cannot be taken
    """

    session: Callable[[], Session]
    values: Values
    not_compared: Collection[str]
    left_out: Collection[str]

    @property
    def followed(self) -> set[str]:
        """The tables that the lake has after `check_types_and_transactions`."""
        return {"things", "later", "no_key", *OF_TRANSACTIONS, *({"child"} - {*self.left_out})}

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

    def is_followed(self, table: str) -> bool:
        """Return whether the lake has the table, and nothing about it is left to do."""
        listed = self.json("status", status=None)["tables"]
        return any(one["table"] == f"shop.shop.{table}" and one["state"] == "well" for one in listed)

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


def check_types_and_transactions(lake: BinlogLake) -> None:
    """Check that the lake equals the database after every type, random transactions, and DDL in between."""
    chance = random.Random(20_262)
    with lake.session() as session:
        insert_values(session, lake.values, 100)
        insert_values(session, lake.values, 200)
        for name, (_, values) in lake.values.items():
            if values:
                execute(session, f"UPDATE things SET {name} = {values[-1]} WHERE id >= 200")
        transact(session, chance, 40)
        # Where the log has what a foreign key changes, the lake has the child table.
        insert_values(session, lake.values, 300)
        execute(session, "INSERT INTO child VALUES (1, 300), (2, 301), (3, 301)")
        execute(session, "DELETE FROM things WHERE id = 300")
        execute(session, "UPDATE things SET id = 310 WHERE id = 301")
        for statement in ("XA START 'x'", "INSERT INTO soft (id, name) VALUES (600, 'by XA')"):
            execute(session, statement)
        for step in ("END", "PREPARE", "COMMIT"):
            execute(session, f"XA {step} 'x'")
        execute(session, "TRUNCATE copied")
        execute(session, "INSERT INTO no_key VALUES (2)")
        transact(session, chance, 20)
    process = lake.start("ingest", "--follow", "--json")
    try:
        with lake.session() as session:
            transact(session, chance, 20)
            execute(session, "ALTER TABLE hard ADD COLUMN extra varchar(10), MODIFY amount decimal(20, 5)")
            execute(session, "UPDATE hard SET extra = 'x' WHERE id < 5")
            execute(session, "CREATE TABLE later (id int PRIMARY KEY, note text)")
            execute(session, "INSERT INTO later VALUES (1, 'first'), (2, NULL)")
            transact(session, chance, 20)
            # Then the definitions have been looked at.
            first = lake.json("reconcile", "--wait", "600", status=None)
            execute(session, "REPLACE INTO soft (id, name) VALUES (500, 'goes'), (501, 'stays')")
            execute(session, "DELETE FROM soft WHERE id = 500")
            execute(session, "ALTER TABLE no_key ADD PRIMARY KEY (id)")
            execute(session, "INSERT INTO no_key VALUES (3)")
            # No row event reports these.
            execute(
                session,
                "ALTER TABLE soft ADD COLUMN kind varchar(10) NOT NULL DEFAULT 'old', "
                "ADD COLUMN unseen int DEFAULT 9 INVISIBLE",
            )
            execute(session, "ALTER TABLE copied RENAME COLUMN body TO content")
        wait_until(lambda: lake.is_followed("no_key"), "mended table in the lake", 240, 5)
        found = lake.until_identical()
        verified = lake.verified()
        listed = lake.json("tables")
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)

    assert process.returncode == 130, errors
    assert differences(first) == [], output
    assert differences(found) == [], output
    assert {name for table in found["tables"] for name in table["uncompared_columns"]} == set(
        lake.not_compared
    )
    compared = {table["table"]: table["identical"] for table in found["tables"] if table["problem"] is None}
    assert compared == {f"shop.shop.{name}": True for name in lake.followed}
    assert {one["table"] for one in verified if one["problem"] is None} == compared.keys(), verified
    assert [one["examples"] for one in verified if one["differences"] or one["rows_in_flight"]] == []
    assert sum(one["rows_verified"] for one in verified) == found["rows"]
    assert lake.json("quarantine", "list") == []
    left_out = {one["table"] for one in listed if one.get("state") == "left out"}
    assert left_out == {f"shop.shop.{name}" for name in lake.left_out}


def check_same_values_from_snapshot_and_log(lake: BinlogLake) -> None:
    columns = ", ".join(lake.values)
    rows = {
        first: lake.json(
            "query", f"SELECT {columns} FROM things WHERE id BETWEEN {first} AND {first + 99} ORDER BY id"
        )
        for first in (0, 100)
    }
    if "document" in lake.not_compared:
        # Only the white space differs.
        for row in (*rows[0], *rows[100]):
            row["document"] = json.loads(row["document"] or "null")

    assert len(rows[0]) == ROWS
    assert rows[0] == rows[100]


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
