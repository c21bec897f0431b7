"""A client reads the tiles of boards like tables of the database `boards`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pymysql
import pytest

from tests.ports import free_port
from tests.sql_server.test_server import Lake, answers, connected
from tributary.api.sql import Limits
from tributary.contract.table_name import TableName
from tributary.sql_server.board_tables import BoardTables
from tributary.sql_server.server import Access, serving
from tributary.sql_server.session import ServedLake

SALES = TableName("shop", "public", "sales")
BOARD = """
title = "Shop"

[[tile]]
title = "Revenue by city"
chart = "bar"
x = "city"
y = "revenue"
sql = '''
SELECT city, sum(price) FILTER (price > 0) AS revenue FROM sales GROUP BY ALL ORDER BY ALL -- all of them
'''

[[tile]]
title = "Revenue then"
chart = "number"
value = "revenue"
as_of = "2026-01-01 00:00:00"
sql = "SELECT sum(price) AS revenue FROM sales;"

[[tile]]
title = "No such table"
chart = "table"
sql = "SELECT * FROM nowhere"
"""


@dataclass
class World:
    access: Access
    lake: Lake
    folder: Path
    told: list[str]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "shop.toml").write_text(BOARD)
    told: list[str] = []
    lake = Lake({SALES: pa.table({"city": ["Rome", "Oslo", "Rome"], "price": [1, 2, 3]})})
    boards = BoardTables(lambda: tuple(sorted(tmp_path.glob("*.toml"))), told.append)
    access = Access(free_port(), "a password for tests")
    with serving(ServedLake(lake, Limits(10, "100MB"), boards), access):
        yield World(access, lake, tmp_path, told)


def test_a_tile_is_a_table_that_holds_the_answer_to_its_sql(world: World) -> None:
    with connected(world.access) as cursor:
        asked = "SELECT * FROM boards.shop_revenue_by_city"
        assert answers(cursor, asked) == [("Oslo", 2), ("Rome", 4)]
        joined = (
            "SELECT b.city, count(*) FROM boards.shop_revenue_by_city b JOIN sales s ON s.city = b.city "
            "WHERE b.revenue > 2 GROUP BY b.city"
        )
        assert answers(cursor, joined) == [("Rome", 2)]
        cursor.execute("USE boards")
        assert answers(cursor, "SELECT max(revenue) AS most FROM shop_revenue_by_city") == [(4,)]


def test_names_that_a_client_defines_do_not_change_a_tile(world: World) -> None:
    with connected(world.access) as cursor:
        asked = "WITH sales AS (SELECT 'X' AS city, 99 AS price) SELECT * FROM boards.shop_revenue_by_city"
        assert answers(cursor, asked) == [("Oslo", 2), ("Rome", 4)]
        within = "SELECT count(*) FROM (boards.shop_revenue_by_city b JOIN sales s ON s.city = b.city)"
        assert answers(cursor, within) == [(3,)]


@pytest.mark.parametrize("other", ["sales", "boards.shop_revenue_by_city"])
def test_a_tile_of_an_earlier_time_is_not_read_together_with_tables_of_now(world: World, other: str) -> None:
    with (
        connected(world.access) as cursor,
        pytest.raises(pymysql.MySQLError, match="as of one time"),
    ):
        cursor.execute(f"SELECT * FROM boards.shop_revenue_then, {other}")


def test_a_tile_of_an_earlier_time_is_answered_as_of_that_time(world: World) -> None:
    with connected(world.access) as cursor:
        assert answers(cursor, "SELECT revenue FROM boards.shop_revenue_then") == [(6,)]
        defined = "WITH `then` AS (SELECT revenue FROM boards.shop_revenue_then) SELECT * FROM `then`"
        assert answers(cursor, defined) == [(6,)]
    assert world.lake.asked[-1][1] == "2026-01-01 00:00:00"


def test_clients_see_the_tiles_with_their_columns_and_a_tile_that_fails_is_told_once(world: World) -> None:
    (world.folder / "broken.toml").write_text("title = 7")
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns "
    with connected(world.access) as cursor:
        for _ in range(2):
            found = answers(cursor, columns + "WHERE table_schema = 'boards' ORDER BY 1, 2")
    assert [row[:2] for row in found] == [
        ("shop_revenue_by_city", "city"),
        ("shop_revenue_by_city", "revenue"),
        ("shop_revenue_then", "revenue"),
    ]
    assert len(world.told) == 2
    assert "broken.toml" in world.told[0]
    assert "nowhere" in world.told[1]


def test_a_tile_that_no_board_has_is_refused_with_those_that_there_are(world: World) -> None:
    with (
        connected(world.access) as cursor,
        pytest.raises(pymysql.MySQLError, match="shop_revenue_by_city or shop_revenue_then"),
    ):
        cursor.execute("SELECT * FROM boards.nothing")
