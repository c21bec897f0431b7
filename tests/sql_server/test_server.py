"""A client of MySQL reads the lake with a password, sees its tables and columns, and can change nothing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.ports import free_port
from tributary.api.sql import Limits, query_arrow
from tributary.contract.table_name import TableName
from tributary.sql_server.server import HOST, USER, Access, open_access, serving
from tributary.sql_server.session import ServedLake

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 250_000)
AMOUNT = Decimal("12345678901234567890.10")
SINCE_MIDNIGHT = timedelta(hours=23, minutes=59, seconds=59, microseconds=1)
ROWS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "id": (pa.int64(), [1, -(2**63)], [1, -(2**63)]),
    "small": (pa.int32(), [7, None], [7, None]),
    "large": (pa.uint64(), [2**64 - 1, None], [Decimal(2**64 - 1), None]),
    "flag": (pa.bool_(), [True, False], [1, 0]),
    "ratio": (pa.float64(), [0.1, None], [0.1, None]),
    "amount": (pa.decimal128(38, 2), [AMOUNT, None], [AMOUNT, None]),
    "day": (pa.date32(), [date(2026, 1, 31), None], [date(2026, 1, 31), None]),
    "at": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC), None], [MOMENT, None]),
    "local": (pa.timestamp("us"), [MOMENT, None], [MOMENT, None]),
    "clock": (pa.time64("us"), [time(23, 59, 59, 1), None], [SINCE_MIDNIGHT, None]),
    "name": (pa.string(), ["O'Brien ✓ <script>", ""], ["O'Brien ✓ <script>", ""]),
    "raw": (pa.binary(), [b"\x00\xff'", None], [b"\x00\xff'", None]),
    "tags": (pa.list_(pa.string()), [["a", None], None], ['["a", null]', None]),
    "nothing": (pa.null(), [None, None], [None, None]),
}  # fmt: skip
"""By column: its type, its values, and what a client gets."""
ORDERS = TableName("shop", "public", "orders")
PEOPLE = TableName("crm", "dbo", "people")


@dataclass
class Lake:
    """A lake in memory, which notes what it was asked."""

    tables: Mapping[TableName, pa.Table]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    schemas_read: int = 0

    def sql(self, query: str, as_of: str | None = None, limits: Limits | None = None) -> pa.Table:
        self.asked.append((query, as_of))
        return query_arrow(self.tables, query, limits)

    def schemas(self) -> Mapping[TableName, pa.Schema]:
        self.schemas_read += 1
        return {name: table.schema for name, table in self.tables.items()}


@pytest.fixture(scope="module")
def lake() -> Lake:
    columns = {name: pa.array(values, type_) for name, (type_, values, _) in ROWS.items()}
    return Lake({ORDERS: pa.table(columns), PEOPLE: pa.table({"id": [1, 2, 3]})})


@pytest.fixture(scope="module")
def access() -> Access:
    return Access(free_port(), "a password for tests")


@pytest.fixture(scope="module")
def address(lake: Lake, access: Access) -> Iterator[Access]:
    with serving(ServedLake(lake, Limits(2, "100MB")), access):
        yield access


@contextmanager
def connected(access: Access, **more: Any) -> Iterator[Cursor]:
    settings = {"user": USER, "password": access.password, **more}
    with (
        pymysql.connect(host=HOST, port=access.port, **settings) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


def answers(cursor: Cursor, sql: str) -> list[tuple[Any, ...]]:
    cursor.execute(sql)
    return list(cursor.fetchall())


def test_every_type_arrives_with_its_exact_values(address: Access) -> None:
    with connected(address) as cursor:
        rows = answers(cursor, "SELECT * FROM orders")
        assert [column[0] for column in cursor.description or ()] == list(ROWS)
    assert rows == list(zip(*(sent for _, _, sent in ROWS.values()), strict=True))


def test_a_moment_beyond_those_of_python_arrives_as_a_text(address: Access) -> None:
    with connected(address) as cursor:
        assert answers(
            cursor, "SELECT CAST('12026-01-31 10:00:00' AS DATETIME) AS at FROM people WHERE id = 1"
        ) == [("12026-01-31 10:00:00",)]


def test_databases_tables_and_columns_are_listed(address: Access, lake: Lake) -> None:
    with connected(address) as cursor:
        databases = {row[0] for row in answers(cursor, "SHOW DATABASES")}
        assert {"shop.public", "crm.dbo"} <= databases
        assert answers(cursor, "SHOW TABLES FROM `shop.public`") == [("orders",)]
        types = {row[0]: row[1] for row in answers(cursor, "DESCRIBE `shop.public`.orders")}
        assert types["amount"] == "decimal(38,2)"
        assert types.keys() == ROWS.keys()
        found = answers(
            cursor,
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'crm.dbo'",
        )
        assert found == [("people", "id")]
        (_, created) = answers(cursor, "SHOW CREATE TABLE `shop.public`.orders")[0]
        assert "  `amount` decimal(38,2) DEFAULT NULL,\n" in created
        assert [row[:2] for row in answers(cursor, "SHOW TABLE STATUS FROM `crm.dbo`")] == [
            ("people", "Hudi")
        ]
    assert lake.schemas_read == 1, "a listing reads the tables' columns again"


def test_a_database_in_use_is_where_short_names_are_looked_up(address: Access) -> None:
    with connected(address, database="crm.dbo") as cursor:
        assert answers(cursor, "SELECT count(*) FROM people") == [(3,)]
        assert answers(cursor, "SELECT count(*) FROM shop.public.orders") == [(2,)]
        cursor.execute("USE `shop.public`")
        assert answers(cursor, "SELECT count(*) FROM orders") == [(2,)]


def test_a_query_reads_the_tables_as_of_a_time(address: Access, lake: Lake) -> None:
    with connected(address) as cursor:
        answers(cursor, "SELECT id FROM orders FOR SYSTEM_TIME AS OF '2026-01-31 12:00:00'")
    assert lake.asked[-1] == ("SELECT id FROM orders", "2026-01-31 12:00:00")


def test_a_prepared_statement_has_parameters(address: Access) -> None:
    with connected(address) as cursor:
        cursor.execute("SELECT name FROM orders WHERE id = %s AND name = %s", (1, "O'Brien ✓ <script>"))
        assert cursor.fetchall() == (("O'Brien ✓ <script>",),)


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_a_query(address: Access) -> None:
    with pymysql.connect(host=HOST, port=address.port, user=USER, password=address.password) as connection:
        found = pd.read_sql("SELECT id, amount FROM orders ORDER BY id DESC", connection)
    assert list(found["id"]) == [1, -(2**63)]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM orders", "can only be read"),
        ("DROP TABLE orders", "can only be read"),
        ("SELECT * FROM read_csv('/etc/passwd')", "neither use files nor reach the network"),
        ("GRANT ALL ON orders TO lake", "can only be read"),
        ("SHOW CREATE TABLE `shop.public`.absent", "doesn't exist"),
        ("SELECT nothing_like_it FROM orders", "nothing_like_it"),
        ("SELECT * FROM absent", "absent"),
        ("TRUNCATE orders", "found TRUNCATE, expected"),
        ("EXPLAIN SELECT 1", "found EXPLAIN, expected"),
        ("SELEC 1", r"The statement cannot be read: found '1' at line 1, column 7\b"),
        ("SELECT * FROM orders INTO OUTFILE '/tmp/a'", r"cannot be read: found 'INTO' at line 1"),
        ("SELECT LOAD_FILE('/etc/passwd')", "(?i)function with name load_file does not exist"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_the_connection_stays(
    address: Access, sql: str, told: str
) -> None:
    with connected(address) as cursor:
        with pytest.raises(pymysql.Error, match=told):
            cursor.execute(sql)
        assert answers(cursor, "SELECT count(*) FROM people") == [(3,)]


def test_a_query_that_takes_too_long_is_ended(address: Access) -> None:
    with connected(address) as cursor, pytest.raises(pymysql.Error, match="longer than 2 seconds"):
        cursor.execute("SELECT count(*) FROM range(100000000000) AS a, range(10) AS b")


@pytest.mark.parametrize(
    "login", [{"password": "wrong"}, {"password": ""}, {"user": "root"}, {"user": "root", "password": ""}]
)
def test_nobody_else_gets_in(address: Access, login: dict[str, str]) -> None:
    with pytest.raises(pymysql.Error), connected(address, **login):
        pass


def test_the_options_are_the_owner_s_alone_and_keep_the_password(tmp_path: Path) -> None:
    options = tmp_path / "state" / "sql-server.cnf"
    first = open_access(options, 3307)
    assert len(first.password) == 32
    assert first.password not in repr(first)
    assert stat.S_IMODE(options.stat().st_mode) == 0o600
    assert open_access(options, 3308) == Access(3308, first.password)
    text = options.read_text()
    assert text.startswith("[client]\n")
    assert "port=3308" in text


def test_a_client_logs_in_with_the_file_of_options(lake: Lake, tmp_path: Path) -> None:
    options = tmp_path / "sql-server.cnf"
    access = open_access(options, free_port())
    with (
        serving(ServedLake(lake, Limits(2, "100MB")), access),
        pymysql.connect(read_default_file=str(options)) as connection,
        connection.cursor() as cursor,
    ):
        assert json.loads(answers(cursor, "SELECT tags FROM orders WHERE id = 1")[0][0]) == ["a", None]


def test_the_information_schema_is_asked_within_the_limits_and_reads_no_file(address: Access) -> None:
    with connected(address) as cursor:
        for sql, told in (
            (
                "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, "
                "information_schema.columns c, information_schema.columns d",
                "longer than 2 seconds",
            ),
            ("SELECT t.* FROM information_schema.tables t, read_text('/etc/hostname') f", "."),
        ):
            with pytest.raises(pymysql.Error, match=told):
                cursor.execute(sql)
        assert answers(
            cursor,
            "SELECT data_type AS Type FROM def.information_schema.columns "
            "WHERE table_name = 'orders' AND column_name = 'amount'",
        ) == [("decimal",)]
        assert answers(cursor, "SHOW COLLATION LIKE 'latin%'") == []
        assert len(answers(cursor, "SHOW COLLATION LIKE 'utf8mb4%'")) == 1
