"""A table derived from tables always has the rows that its query gives over all rows of its inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.derive.touched import AllKeys, touched_keys
from tests.parameters import first_then_long
from tests.spark_app.derive.derived_lake import DerivedLake
from tributary.contract.errors import TributaryError

TYPES = {
    "customers": "id bigint, country string, vip boolean",
    "orders": "id bigint, customer bigint, amount decimal(9,2)",
}
QUERIES = {
    "by_country": (
        "country",
        "SELECT c.country AS country, count(*) AS orders, sum(o.amount) AS total FROM orders o "
        "JOIN customers c ON o.customer = c.id WHERE o.amount > 1 GROUP BY c.country HAVING count(*) > 1",
    ),
    "by_customer": (
        "id",
        "SELECT c.id AS id, c.vip AS vip, count(o.id) AS orders, max(o.amount) AS most "
        "FROM shop.public.customers c LEFT JOIN public.orders o ON o.customer = c.id AND o.amount > 2 "
        "GROUP BY c.id, c.vip",
    ),
    "enriched": (
        "id",
        "SELECT orders.id AS id, amount, country FROM orders LEFT JOIN customers "
        "ON orders.customer = customers.id",
    ),
    "without_orders": (
        "id",
        "SELECT c.id AS id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
    ),
    "neighbors": (
        "id",
        "SELECT a.id AS id, count(*) AS others FROM orders a JOIN orders b ON a.customer = b.customer "
        "AND a.id <> b.id GROUP BY a.id",
    ),
    "first_orders": (
        "customer",
        "SELECT customer, id FROM (SELECT customer, id, row_number() OVER "
        "(PARTITION BY customer ORDER BY id) AS n FROM orders) numbered WHERE n = 1 AND customer IS NOT NULL",
    ),
}
LAKE = "".join(f'[derived.{name}]\nkey = ["{key}"]\nsql = "{sql}"\n' for name, (key, sql) in QUERIES.items())

CUSTOMER = st.tuples(st.sampled_from(["US", "DE", None]), st.booleans())
ORDER = st.tuples(
    st.sampled_from([1, 2, 3, 4, None]),
    st.decimals(0, 5, places=2, allow_nan=False, allow_infinity=False),
)
STEP = st.fixed_dictionaries(
    {
        "customers": st.dictionaries(st.integers(1, 4), CUSTOMER | st.none(), max_size=3),
        "orders": st.dictionaries(st.integers(1, 6), ORDER | st.none(), max_size=4),
    }
)
"""The new rows of a step by key; None deletes the row."""

Model = dict[str, dict[int, tuple[Any, ...]]]


Steps = list[Mapping[str, Mapping[int, tuple[Any, ...] | None]]]

HISTORY: Steps = [
    {
        "customers": {1: ("US", True), 2: ("DE", False)},
        "orders": {1: (1, Decimal("3.00")), 2: (1, Decimal("2.50")), 3: (2, Decimal("4.00"))},
    },
    # A move to another country, a first order, a delete.
    {"customers": {1: ("DE", True), 3: ("US", None)}, "orders": {2: None, 4: (3, Decimal("5.00"))}},
    {"customers": {2: None}, "orders": {1: (None, Decimal("3.00"))}},
]


@pytest.mark.parametrize("name", first_then_long(("by_country", "first_orders", "by_customer")))
def test_inserts_updates_and_deletes_of_any_input_change_only_the_rows_that_they_touch(
    spark: SparkSession, name: str
) -> None:
    _check(spark, HISTORY, (name,))


@pytest.mark.long
@settings(max_examples=10)
@given(steps=st.lists(STEP, min_size=2, max_size=4))
def test_after_any_changes_the_rows_are_those_of_the_query_over_all_rows(
    spark: SparkSession, steps: Steps
) -> None:
    _check(spark, steps, tuple(QUERIES))


def _check(spark: SparkSession, steps: Steps, names: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lake = DerivedLake(spark, Path(folder), LAKE, TYPES)
        model: Model = {
            "customers": {9: ("FR", True)},
            "orders": {90: (9, Decimal("4.00")), 91: (9, Decimal("3.00"))},
        }
        for table, rows in model.items():
            lake.write(table, [(key, *values) for key, values in rows.items()])
        opened = {name: lake.from_tables(name) for name in names}
        for number, step in enumerate(steps):
            for table, changes in step.items():
                _apply(lake, model, table, changes)
            for name in names:
                if number % 2:
                    opened[name] = lake.from_tables(name)  # A restart.
                committed = opened[name].advance()
                if committed is not None and number > 0 and name != "first_orders":
                    assert committed.events > 0, f"{name} was computed in full"
                assert opened[name].advance() is None, "nothing has changed since"
                assert lake.rows(name) == expected(model, QUERIES[name][1]), name


def _apply(
    lake: DerivedLake, model: Model, table: str, changes: Mapping[int, tuple[Any, ...] | None]
) -> None:
    upserts = [(key, *values) for key, values in changes.items() if values is not None]
    gone = [key for key, values in changes.items() if values is None]
    if upserts or gone:
        lake.write(table, upserts, [(key, None, None) for key in gone])
        model[table].update({key: values for key, *values in upserts})
        for key in gone:
            model[table].pop(key, None)


def expected(model: Model, sql: str) -> list[tuple[Any, ...]]:
    """Return what DuckDB's answer is over the model's rows."""
    with duckdb.connect() as engine:
        engine.execute("ATTACH ':memory:' AS shop; CREATE SCHEMA shop.public; USE shop.public")
        engine.execute("CREATE TABLE customers (id BIGINT, country TEXT, vip BOOLEAN)")
        engine.execute("CREATE TABLE orders (id BIGINT, customer BIGINT, amount DECIMAL(9,2))")
        for table, rows in model.items():
            for key, values in rows.items():
                engine.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", [key, *values])
        return sorted(engine.execute(sql).fetchall(), key=repr)


def test_a_change_is_looked_up_by_keys_unless_the_query_relates_rows_in_other_ways() -> None:
    forms = {name: touched_keys(sql, (key,)) for name, (key, sql) in QUERIES.items()}
    assert {name for name, form in forms.items() if isinstance(form, AllKeys)} == {"first_orders"}


def test_a_changed_query_is_applied_to_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = DerivedLake(spark, tmp_path, _orders("SELECT id, amount FROM orders"), TYPES)
    lake.write("orders", [(1, 1, Decimal(5)), (2, 1, Decimal(1))])
    lake.advance("best")
    lake.text = _orders("SELECT id, amount, customer AS bought_by FROM orders WHERE amount > 2")
    lake.advance("best")
    assert lake.rows("best") == [(1, Decimal(5), 1)]
    lake.text = _orders("SELECT id FROM orders WHERE amount > 99")
    lake.advance("best")
    assert lake.rows("best") == []
    lake.write("orders", [(3, 1, Decimal(100))])
    lake.advance("best")
    assert lake.rows("best") == [(3,)]


def test_a_table_keeps_its_layout_when_the_defaults_change(spark: SparkSession, tmp_path: Path) -> None:
    lake = DerivedLake(spark, tmp_path, _orders("SELECT id, amount FROM orders"), TYPES)
    rows = [(number, 1, Decimal(number)) for number in range(8)]
    lake.write("orders", rows)
    lake.advance("best")
    lake.text += '[defaults]\nbuckets = 5\nstorage = "copy_on_write"\n'
    opened = lake.from_tables("best")
    assert (opened.table.hudi.policy.buckets, opened.table.hudi.policy.storage) == (2, "merge_on_read")
    lake.text = _orders("SELECT id, amount + 1 AS amount FROM orders") + "[defaults]\nbuckets = 5\n"
    lake.advance("best")
    assert [row[0] for row in lake.rows("best")] == list(range(8)), "no row is there twice"


def test_a_key_that_two_rows_have_is_told_and_the_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    lake = DerivedLake(spark, tmp_path, _orders("SELECT customer AS id FROM orders"), TYPES)
    lake.write("orders", [(1, 7, Decimal(5))])
    lake.advance("best")
    lake.write("orders", [(2, 7, Decimal(5))])
    with pytest.raises(TributaryError, match="2 rows of the result have the same key"):
        lake.advance("best")
    assert lake.rows("best") == [(7,)]


def test_a_python_function_derives_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "best.py").write_text(
        "def derive(orders):\n    return orders.where('amount > 2').select('id')\n"
    )
    text = '[derived.best]\nkey = ["id"]\npython = "best.py"\ninputs = ["public.orders"]\n'
    lake = DerivedLake(spark, tmp_path, text, TYPES)
    lake.write("orders", [(1, 1, Decimal(5)), (2, 1, Decimal(1))])
    lake.advance("best")
    assert lake.rows("best") == [(1,)]


def test_a_python_function_that_fails_in_its_rows_is_told_and_the_rows_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "best.py").write_text(
        "from pyspark.sql import functions as F\n"
        "share = F.udf(lambda customer: 10 // customer, 'int')\n"
        "def derive(orders):\n    return orders.select('id', share('customer').alias('share'))\n"
    )
    text = '[derived.best]\nkey = ["id"]\npython = "best.py"\ninputs = ["orders"]\n'
    lake = DerivedLake(spark, tmp_path, text, TYPES)
    lake.write("orders", [(1, 5, Decimal(5))])
    lake.advance("best")
    lake.write("orders", [(2, 0, Decimal(1))])
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        lake.advance("best")
    assert lake.rows("best") == [(1, 2)]


def test_a_source_s_columns_can_come_and_change_their_types(spark: SparkSession, tmp_path: Path) -> None:
    lake = DerivedLake(spark, tmp_path, _orders("SELECT id, customer FROM orders"), TYPES)
    lake.write("orders", [(1, 7, Decimal(5))])
    lake.advance("best")
    lake.types = {"orders": f"{TYPES['orders']}, note string"}
    lake.write("orders", [(2, 8, Decimal(5), "new")])
    lake.advance("best")
    assert lake.rows("best") == [(1, 7), (2, 8)]
    lake.text = _orders("SELECT id, customer, note FROM orders")
    lake.advance("best")
    assert lake.rows("best") == [(1, 7, None), (2, 8, "new")]
    lake.types = {"orders": "id bigint, customer string, amount decimal(9,2), note string"}
    lake.replace("orders", [(1, "seven", Decimal(5), None), (2, "eight", Decimal(5), "new")])
    lake.advance("best")
    assert lake.rows("best") == [(1, "seven", None), (2, "eight", "new")]
    lake.write("orders", [(3, "nine", Decimal(1), "newer")], deletes=[(1, "", Decimal(0), None)])
    lake.advance("best")
    assert lake.rows("best") == [(2, "eight", "new"), (3, "nine", "newer")]


def test_a_topic_learns_of_rows_that_a_query_with_other_columns_no_longer_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (
        '[derived.best]\nkey = ["id"]\nconsole = true\nsql = "SELECT id, COLUMNS FROM orders WHERE id > N"\n'
    )
    lake = DerivedLake(spark, tmp_path, "", TYPES)
    lake.write("orders", [(1, 7, Decimal(5)), (2, 8, Decimal(5)), (3, 9, Decimal(5))])
    for columns, least in (("customer", "0"), ("customer AS buyer", "2")):
        lake.text = text.replace("COLUMNS", columns).replace('N"', f'{least}"')
        lake.advance("best")
    told = {report["key"]: report["value"] for report in lake.reports() if report["event"] == "derived_row"}
    expected = {'{"id":1}': None, '{"id":2}': None, '{"id":3}': '{"id":3,"buyer":9}'}
    assert told == expected


def _orders(sql: str) -> str:
    return f'[derived.best]\nkey = ["id"]\nsql = "{sql}"\n'
