"""The events of the outbox example give the same numbers as the rows from which its generator made them."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.fs
import pytest
import sqlglot

from examples.northwind.shop import (
    Change,
    CustomerCalled,
    OrderCancelled,
    OrderPlaced,
    OrderShipped,
    Shop,
    after,
    generate,
    trade,
)
from tests.examples.conftest import PROJECT, RunningLake, kept_running
from tributary.api.open_lake import OpenLake
from tributary.operations.boards.answers import Figure, Lines, Points, Slices, shown
from tributary.operations.boards.board import read_board
from tributary.operations.workspace import Workspace

EXAMPLE = PROJECT / "examples" / "northwind"
ORDERS, TRANSACTIONS = 120, 80
SEED = 2


@pytest.fixture(scope="module")
def northwind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    """The example after a small trade."""
    lake = RunningLake(EXAMPLE / "lake.toml", tmp_path_factory.mktemp("northwind") / "state")
    size = ["--orders", str(ORDERS), "--transactions", str(TRANSACTIONS), "--rate", "40", "--seed", str(SEED)]
    with kept_running(lake, sys.executable, "-m", "examples.northwind.run", *size) as said:
        assert "5 tables, " in said
        assert ", identical" in said
        yield lake


@pytest.fixture(scope="module")
def opened(northwind: RunningLake) -> OpenLake:
    return Workspace.open(northwind.lake_file, northwind.state).open_lake


def _before() -> Shop:
    return generate(SEED, orders=ORDERS)


def _changes() -> list[Change]:
    return list(trade(_before(), TRANSACTIONS, SEED))


def _after() -> Shop:
    return after(_before(), iter(_changes()))


def _item_rows(shop: Shop) -> list[tuple[object, ...]]:
    """The rows that the SQL of both dialects has to return, from the generator's rows alone."""
    return sorted(
        (
            order.order_id,
            order.customer_id,
            order.ordered_on,
            item.product_id,
            shop.products[item.product_id].name,
            shop.products[item.product_id].category,
            item.quantity,
            item.unit_price,
            item.discount,
            item.quantity * item.unit_price * (1 - item.discount),
        )
        for order in shop.orders.values()
        for item in order.items.values()
    )


def _athena_as_duckdb() -> str:
    """Return the query for Athena in DuckDB's dialect, over the table's name on this machine."""
    parsed = sqlglot.parse_one((EXAMPLE / "order_items.athena.sql").read_text(), dialect="athena")
    return parsed.sql(dialect="duckdb").replace("northwind_silver.shop__public__cdc_events", "cdc_events")


def _columns(query: str, dialect: str) -> list[str]:
    return sqlglot.parse_one(query, dialect=dialect).named_selects


def test_a_seed_always_gives_the_same_shop_and_trade() -> None:
    assert generate(5) == generate(5)
    assert generate(5) != generate(6)
    assert list(trade(generate(5), 50, 5)) == list(trade(generate(5), 50, 5))
    kinds = {type(change) for change in _changes()}
    assert len(kinds) == 5, "the trade of the test has each kind of transaction"


def test_both_dialects_give_the_same_columns() -> None:
    here = (EXAMPLE / "order_items.duckdb.sql").read_text()
    there = (EXAMPLE / "order_items.athena.sql").read_text()
    assert _columns(here, "duckdb") == _columns(there, "athena")
    assert len(_columns(here, "duckdb")) == 10
    nothing = (
        "CREATE TABLE cdc_events (id BIGINT, aggregatetype TEXT, aggregateid TEXT, type TEXT, payload TEXT)"
    )
    with duckdb.connect() as engine:
        engine.execute(nothing)
        found = [engine.sql(query) for query in (here, _athena_as_duckdb())]
        assert found[0].columns == found[1].columns
        assert found[0].types == found[1].types


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
class TestOnARunningPipeline:
    """The lake of the example after its trade."""

    def test_the_events_have_the_items_that_the_generator_made(self, opened: OpenLake) -> None:
        expected = _item_rows(_after())
        for query in ((EXAMPLE / "order_items.duckdb.sql").read_text(), _athena_as_duckdb()):
            assert _rows(opened.sql(query)) == expected

    def test_each_transaction_leaves_one_event(self, northwind: RunningLake, opened: OpenLake) -> None:
        query = "SELECT aggregatetype, type, count(*) AS n FROM cdc_events GROUP BY ALL"
        found = {(row["aggregatetype"], row["type"]): row["n"] for row in opened.sql(query).to_pylist()}
        assert found == _expected_events()
        in_database = {
            (row["aggregatetype"], row["type"]): row["n"]
            for row in northwind.rows(query.replace("ALL", "1, 2"))
        }
        assert found == in_database

    def test_the_board_shows_revenue_as_it_follows_from_the_generator_s_rows(self, opened: OpenLake) -> None:
        board = read_board(EXAMPLE / "boards" / "revenue.toml")
        found = {tile.title: shown(tile, opened.sql(tile.sql), tile.title) for tile in board.tiles}
        shop = _after()
        revenue: dict[str, Decimal] = defaultdict(Decimal)
        by_order: dict[str, dict[int, tuple[int, Decimal]]] = defaultdict(dict)
        for order in shop.orders.values():
            worth = [
                (item.quantity, item.quantity * item.unit_price * (1 - item.discount))
                for item in order.items.values()
            ]
            total = sum((value for _, value in worth), Decimal(0))
            revenue[order.customer_id] += total
            by_order[order.customer_id][order.order_id] = sum(count for count, _ in worth), total
        company = {name: customer.company for name, customer in shop.customers.items()}

        figure, pie = found["Revenue"], found["Share of the top customers"]
        assert isinstance(figure, Figure)
        assert figure.value == pytest.approx(sum(revenue.values()), abs=Decimal("0.01"))
        assert isinstance(pie, Slices)
        top = sorted(revenue, key=lambda name: (-revenue[name], name))
        expected = {company[name]: float(revenue[name]) for name in top[:8]}
        expected["all others"] = float(sum(revenue[name] for name in top[8:]))
        assert dict(pie.slices) == pytest.approx(expected, abs=0.01)

        bubbles = found["Customers: average quantity and revenue of an order, by number of orders"]
        assert isinstance(bubbles, Points)
        assert {name: (x, y, size) for x, y, size, name in bubbles.points} == {
            company[name]: (
                pytest.approx(sum(count for count, _ in orders.values()) / len(orders), abs=0.051),
                pytest.approx(float(sum(total for _, total in orders.values())) / len(orders), abs=0.01),
                len(orders),
            )
            for name, orders in by_order.items()
        }
        bars = found["Revenue by month"]
        assert isinstance(bars, Lines)
        assert sum(value or 0 for series in bars.series for value in series.values) == pytest.approx(
            float(sum(revenue.values())), abs=0.5
        )

    def test_customers_and_orders_are_partitioned(self, northwind: RunningLake) -> None:
        workspace = Workspace.open(northwind.lake_file, northwind.state)
        shop = _after()
        for table, values in (
            ("customers", {customer.country for customer in shop.customers.values()}),
            ("orders", {f"{order.ordered_on:%Y-%m}" for order in shop.orders.values()}),
        ):
            folder = f"northwind-silver/shop/public/{table}"
            entries = workspace.files.filesystem.get_file_info(pyarrow.fs.FileSelector(folder))
            assert {entry.base_name for entry in entries if not entry.base_name.startswith(".")} >= values


def _rows(answer: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in answer.to_pylist())


def _expected_events() -> dict[tuple[str, str], int]:
    """One event for each customer, each order, and each transaction of the trade that changes a row."""
    shop = _before()
    found = Counter(
        {("customer", "CustomerAdded"): len(shop.customers), ("order", "OrderPlaced"): len(shop.orders)}
    )
    for change in _changes():
        match change:
            case OrderPlaced():
                found["order", "OrderPlaced"] += 1
            case OrderCancelled():
                found["order", "OrderDeleted"] += 1
            case CustomerCalled():
                found["customer", "CustomerChanged"] += 1
            case OrderShipped():
                found["order", "OrderChanged"] += 1
            case _:
                found["order", "OrderChanged"] += change.applied_to(shop) != shop
        shop = change.applied_to(shop)
    return dict(found)
