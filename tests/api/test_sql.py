"""SQL over the lake's tables: every name that a table can have in a query, and the message for a mistake."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_app.columns import table_columns
from tributary.api.sql import Limits, QueryError, named_in, query_arrow
from tributary.contract.column_names import OWN_COLUMNS
from tributary.contract.table_name import TableName

ORDERS = TableName("shop", "public", "orders")
LINES = TableName("shop", "public", "Order Lines")
ARCHIVED = TableName("shop", "archive", "orders")
ORDER_ROWS = pa.table({"id": [1, 2], "_seq": [1, 2]})
LINE_ROWS = pa.table({"id": [2, 2, 3], "_seq": [3, 4, 5]})


@pytest.mark.parametrize("name", ["orders", "public.orders", "shop.public.orders", "ORDERS"])
def test_a_query_can_use_each_of_a_table_s_names(name: str) -> None:
    assert query_arrow({ORDERS: ORDER_ROWS}, f"SELECT sum(id) AS n FROM {name}").to_pylist() == [{"n": 3}]


def test_tables_join_by_name_and_using() -> None:
    tables = {ORDERS: ORDER_ROWS, LINES: LINE_ROWS}
    query = """SELECT count(*) AS n FROM orders JOIN public."Order Lines" USING (id)"""
    assert query_arrow(tables, query).to_pylist() == [{"n": 2}]


def test_a_short_name_of_two_tables_is_refused_rather_than_guessed() -> None:
    tables = {ORDERS: ORDER_ROWS, ARCHIVED: LINE_ROWS}
    assert query_arrow(tables, "SELECT count(*) AS n FROM archive.orders").to_pylist() == [{"n": 3}]
    with pytest.raises(QueryError, match=r"shop\.public\.orders"):
        query_arrow(tables, "SELECT * FROM orders")


def test_a_schema_may_have_the_name_of_its_source() -> None:
    orders = TableName("shop", "shop", "orders")
    for name in ("orders", "shop.orders", "shop.shop.orders"):
        assert query_arrow({orders: ORDER_ROWS}, f"SELECT count(*) AS n FROM {name}").to_pylist() == [
            {"n": 2}
        ]


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing FROM orders", "SELECT f(1)", ""])
def test_every_mistake_in_a_query_raises_the_same_error(query: str) -> None:
    with pytest.raises(QueryError):
        query_arrow({ORDERS: ORDER_ROWS}, query)


@pytest.mark.parametrize(
    ("query", "is_named"),
    [
        ("SELECT * FROM orders", True),
        ("SELECT * FROM shop.public.ORDERS o", True),
        ('SELECT * FROM "orders"', True),
        ("SELECT * FROM orders JOIN lines USING (id)", True),
        ("SELECT * FROM old_orders", False),
        ("SELECT orders_placed FROM days", False),
    ],
)
def test_only_a_table_that_the_query_names_is_read(query: str, is_named: bool) -> None:
    assert named_in(query, [ORDERS]) == ({ORDERS} if is_named else set())


def test_a_table_with_an_odd_name_is_recognized_in_a_query() -> None:
    odd = TableName("shop", "public", 'a "b" c')
    assert named_in('SELECT * FROM "a ""b"" c"', [odd]) == {odd}


def test_of_tables_that_differ_only_in_case_a_query_gets_the_one_that_it_spells_exactly() -> None:
    names = [TableName("shop", "public", name) for name in ("Orders", "ORDERS", "orders", "select")]
    assert named_in('SELECT * FROM "Orders"', names) == {names[0], names[3]}
    assert named_in("SELECT * FROM oRDERS", names) == {names[3]}
    assert query_arrow(
        {names[0]: ORDER_ROWS, names[3]: ORDER_ROWS}, 'SELECT count(*) AS n FROM "Orders"'
    ).to_pylist()


def test_a_short_name_that_two_tables_share_except_for_case_means_neither() -> None:
    tables = {
        TableName("shop", "public", "orders"): ORDER_ROWS,
        TableName("shop", "old", "Orders"): ORDER_ROWS,
    }
    assert query_arrow(tables, "SELECT * FROM public.orders").num_rows == ORDER_ROWS.num_rows
    with pytest.raises(QueryError):
        query_arrow(tables, "SELECT * FROM orders")


def test_moments_are_in_utc_in_any_time_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    moments = pa.table({"moment": pa.array([0], pa.timestamp("us", "UTC"))})
    found = query_arrow({ORDERS: moments}, "SELECT CAST(moment AS VARCHAR) AS seen FROM orders").to_pylist()
    assert found == [{"seen": "1970-01-01 00:00:00+00"}]


def test_the_app_s_columns_are_known_here_as_the_app_declares_them() -> None:
    declared = (*table_columns.APP_COLUMNS.fieldNames(), table_columns.DELETED)
    assert declared == OWN_COLUMNS


def test_an_answer_that_is_larger_than_the_limit_ends_the_query_before_it_is_in_memory() -> None:
    limits = Limits(seconds=60, memory="50MB")
    with pytest.raises(QueryError, match=r"The answer is too large: expected at most 50 MB"):
        query_arrow({}, "SELECT * FROM range(10_000_000_000)", limits)
    assert query_arrow({}, "SELECT * FROM range(1_000_000)", limits).num_rows == 1_000_000
    assert query_arrow({}, "SELECT 1 AS n WHERE false", limits).schema == pa.schema({"n": pa.int32()})


@pytest.mark.parametrize(
    "query", ["SELECT count(*) FROM range(100_000_000_000)", "SELECT * FROM range(10_000_000_000)"]
)
def test_a_query_ends_when_its_time_is_over(query: str) -> None:
    with pytest.raises(QueryError, match=r"The query takes longer than 0\.2 seconds"):
        query_arrow({}, query, Limits(seconds=0.2, memory="100GB"))


def test_an_error_in_a_row_of_a_limited_query_is_told_as_such() -> None:
    query = "SELECT CASE WHEN range > 500_000 THEN error('row ' || range) END FROM range(1_000_000)"
    with pytest.raises(QueryError, match="row 5"):
        query_arrow({}, query, Limits(seconds=60, memory="1GB"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "none"),
        ("-- nothing", "none"),
    ],
)
def test_more_or_less_than_one_statement_is_refused_rather_than_answered_in_part(
    query: str, found: str
) -> None:
    with pytest.raises(QueryError, match=f"A query is one statement: found {found}, expected a statement"):
        query_arrow({ORDERS: ORDER_ROWS}, query)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("INSERT INTO orders VALUES (1, 1)", "INSERT"),
        ("UPDATE orders SET id = 3", "UPDATE"),
        ("DELETE FROM orders", "DELETE"),
        ("DROP VIEW orders", "DROP"),
        ("CREATE TABLE mine AS SELECT 1", "CREATE"),
        ("CREATE OR REPLACE VIEW orders AS SELECT 1", "CREATE"),
        ("WITH new AS (SELECT 1) INSERT INTO orders FROM new", "INSERT"),
        ("SET memory_limit = '100GB'", "SET"),
        ("ATTACH 'other.db'", "ATTACH"),
        ("INSTALL httpfs", "LOAD"),
    ],
)
def test_a_statement_that_would_change_something_is_refused_by_its_kind(query: str, kind: str) -> None:
    with pytest.raises(QueryError, match=f"A query cannot change anything: found {kind}, expected"):
        query_arrow({ORDERS: ORDER_ROWS}, query)


@pytest.mark.parametrize(
    "query",
    [
        "FROM orders",
        "TABLE orders",
        "DESCRIBE orders",
        "SUMMARIZE orders",
        "EXPLAIN SELECT * FROM orders",
        "PIVOT orders ON id USING sum(_seq)",
        "WITH new AS (FROM orders) SELECT * FROM new;  -- the end",
    ],
)
def test_every_statement_that_reads_is_answered(query: str) -> None:
    assert query_arrow({ORDERS: ORDER_ROWS}, query, Limits(seconds=60, memory="1GB")).num_rows > 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('https://example.org/a.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '/tmp/a.csv'",
    ],
)
def test_a_limited_query_that_leaves_the_lake_says_so(query: str) -> None:
    place = query.split("'")[1].replace("*", r"\*")
    with pytest.raises(QueryError, match=f"neither use files nor reach the network: found {place}, expected"):
        query_arrow({}, query, Limits(seconds=60, memory="1GB"))


def test_a_limited_query_that_needs_too_much_memory_says_how_much_it_may_use() -> None:
    with pytest.raises(QueryError, match=r"needs too much memory: found .*, expected at most 50MB"):
        query_arrow({}, "SELECT list(range) FROM range(100_000_000)", Limits(seconds=60, memory="50MB"))
