"""MySQL's and MariaDB's tables are read part by part, each row in the part that DuckDB puts it in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from connectors.engines.binlog.session import Session, execute, rows_of
from connectors.engines.checksums import Between, Bucket, CheckedColumn, Part, place_of
from connectors.engines.engine import RowsUnreadable
from tests.connectors.conftest import BinlogServer

pytestmark = pytest.mark.slow


@pytest.fixture
def admin(binlog_server: BinlogServer) -> Iterator[Session]:
    with binlog_server.log_in_as_admin() as session:
        execute(session, "CREATE DATABASE parted")
        session.select_db("parted")
        yield session
        execute(session, "DROP DATABASE parted")


@pytest.mark.parametrize(
    "key", [("id",), ("id", "part"), ("name", "id"), ("flag", "raw", "id"), ("big", "id")]
)
def test_the_server_and_duckdb_put_each_row_into_the_same_part(
    binlog_server: BinlogServer, admin: Session, key: tuple[str, ...]
) -> None:
    engine = binlog_server.engine
    columns = (
        "id bigint, part smallint unsigned, name varchar(20) COLLATE utf8mb4_general_ci, flag bit(1),"
        " raw varbinary(9), big bigint unsigned"
    )
    execute(admin, f"CREATE TABLE things ({columns}, PRIMARY KEY ({', '.join(key)}))")
    chance = random.Random(1)
    for number in range(300):
        row = (
            chance.randrange(-(2**63), 2**63) if number % 2 else number // 4,
            number % 7 if number % 4 else number,
            "".join(chance.choices("aAéß😀' ", k=chance.randrange(9))) + str(number),
            number % 2,
            chance.randbytes(number % 5),
            2**64 - 1 - number,
        )
        execute(admin, "INSERT IGNORE INTO things VALUES (%s, %s, %s, %s, %s, %s)", row)
    (table,) = [one for one in engine.read_tables(admin) if one.name == "things"]
    order = engine.parts.sorted_columns(admin, table, key)
    assert order == {"id": key, "name": (), "flag": (), "big": ()}[key[0]]
    forms = {column.name: column.form.arrow for column in table.columns if column.form is not None}
    checked = [CheckedColumn(one.name, one.expression, forms[one.name]) for one in table.columns]
    every = pa.Table.from_batches(engine.read_rows(admin, table, forms))
    ends = sorted(zip(*(every[name].to_pylist() for name in order), strict=True))[20:-1:37] if order else []
    parts: list[Part] = [Between(order, *limits) for limits in pairwise([None, *ends, None])]
    if not order:
        parts = [Bucket(key, number, 5) for number in range(5)]

    with engine.parts.limited(admin, 30):
        found = [
            pa.Table.from_batches(
                engine.read_rows(
                    admin, replace(table, condition=engine.parts.condition(table, checked, part)), forms
                ),
                every.schema,
            )
            for part in parts
        ]
    with duckdb.connect() as lake:
        lake.register("rows", every)
        place = place_of(parts, {name: (f'"{name}"', kind) for name, kind in forms.items()})
        for number, of_part in enumerate(found):
            expected = lake.sql(f"SELECT * FROM rows WHERE {place} = {number} ORDER BY ALL").fetchall()
            assert lake.from_arrow(of_part).order("ALL").fetchall() == expected
            assert expected


def test_a_statement_that_runs_for_too_long_is_ended_and_the_session_goes_on(
    binlog_server: BinlogServer, admin: Session
) -> None:
    many = ", ".join(f"information_schema.COLUMNS {one}" for one in "abc")
    with (
        pytest.raises(RowsUnreadable, match=r"time|interrupted"),
        binlog_server.engine.parts.limited(admin, 0.2),
    ):
        rows_of(
            admin, f"SELECT count(DISTINCT {', '.join(f'{one}.COLUMN_NAME' for one in 'abc')}) FROM {many}"
        )
    assert rows_of(admin, "SELECT 1 AS one") == [{"one": 1}]
