"""A query in MySQL's dialect reads the lake's tables, by each of their names and as of a time."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from tributary.contract.table_name import TableName
from tributary.sql_server.table_names import NotAnswered, Question, database_of, question_of

ORDERS = TableName("shop", "public", "orders")


def asked(sql: str, database: str | None = None) -> Question:
    return question_of(parse_one(sql, read="mysql"), database)


@pytest.mark.parametrize(
    ("sql", "database", "duckdb"),
    [
        ("SELECT * FROM orders", None, "SELECT * FROM orders"),
        ("SELECT * FROM orders", "shop.public", 'SELECT * FROM "shop"."public".orders'),
        ("SELECT * FROM `shop.public`.`orders`", None, 'SELECT * FROM "shop"."public"."orders"'),
        ("SELECT * FROM `shop.public`.orders", "crm.dbo", 'SELECT * FROM "shop"."public".orders'),
        ("SELECT * FROM shop.public.orders", "crm.dbo", "SELECT * FROM shop.public.orders"),
        ("SELECT * FROM public.orders", "crm.dbo", "SELECT * FROM public.orders"),
        ("SELECT * FROM `shop.a.b`.orders", None, 'SELECT * FROM "shop"."a.b".orders'),
        (
            "WITH orders AS (SELECT 1 AS id) SELECT * FROM orders",
            "shop.public",
            "WITH orders AS (SELECT 1 AS id) SELECT * FROM orders",
        ),
        (
            "SELECT `shop.public`.`orders`.`id` FROM `shop.public`.`orders`",
            None,
            'SELECT "orders"."id" FROM "shop"."public"."orders"',
        ),
        ('SELECT `a b` FROM orders WHERE c = "text"', None, "SELECT \"a b\" FROM orders WHERE c = 'text'"),
    ],
)
def test_a_table_has_the_lake_s_names_and_its_schema_is_a_database(
    sql: str, database: str | None, duckdb: str
) -> None:
    assert asked(sql, database) == Question(duckdb, None)


def test_the_database_of_a_table_is_its_source_and_schema() -> None:
    assert (
        asked(f"SELECT 1 FROM `{database_of(ORDERS)}`.orders").sql
        == asked("SELECT 1 FROM orders", "shop.public").sql
    )


@pytest.mark.parametrize("moment", ["'2026-01-31 12:00:00'", "TIMESTAMP '2026-01-31 12:00:00'"])
def test_an_earlier_state_is_asked_for_as_in_mariadb(moment: str) -> None:
    found = asked(
        f"SELECT * FROM orders FOR SYSTEM_TIME AS OF {moment} AS o JOIN orders FOR SYSTEM_TIME AS OF {moment}"
    )
    assert found.as_of == "2026-01-31 12:00:00"
    assert "AS OF" not in found.sql


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DELETE FROM orders", "DELETE"),
        ("INSERT INTO orders VALUES (1)", "INSERT"),
        ("CREATE TABLE a (b int)", "CREATE"),
        (
            "SELECT * FROM a FOR SYSTEM_TIME AS OF '2026-01-01', b FOR SYSTEM_TIME AS OF '2026-01-02'",
            "2026-01-02",
        ),
        ("SELECT * FROM a FOR SYSTEM_TIME AS OF (SELECT 1)", "SELECT 1"),
    ],
)
def test_what_does_not_read_one_state_is_refused(sql: str, found: str) -> None:
    with pytest.raises(NotAnswered, match=found):
        asked(sql)
