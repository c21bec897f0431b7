"""The events of the outbox example give the same numbers as the rows from which its generator made them."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.fs
import pytest
import sqlglot

from examples.northwind.run import events_of
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
from tributary.contract.boards.board import read_board
from tributary.contract.boards.views import with_views
from tributary.local.status import read_status
from tributary.operations.boards.answers import Figure, Lines, Points, Slices, shown
from tributary.operations.known_tables import known_tables
from tributary.operations.table_lag import QuietTables
from tributary.operations.table_states import read_table_states
from tributary.operations.workspace import Workspace

EXAMPLE = PROJECT / "examples" / "northwind"
ORDERS, TRANSACTIONS = 120, 80
SEED = 2

Ask = Callable[[str], pa.Table]


@pytest.fixture(scope="module", params=["lake.toml", "router/lake.toml"], ids=["table", "routed"])
def northwind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningLake]:
    """The example after a small trade, with each setting of the outbox."""
    lake = RunningLake(EXAMPLE / request.param, tmp_path_factory.mktemp("northwind") / "state")
    size = ["--orders", str(ORDERS), "--transactions", str(TRANSACTIONS), "--rate", "40", "--seed", str(SEED)]
    with kept_running(lake, sys.executable, "-m", "examples.northwind.run", *size) as said:
        assert " tables, " in said
        assert ", identical" in said
        yield lake


@pytest.fixture(scope="module")
def ask(northwind: RunningLake) -> Ask:
    """Ask the lake, in which `cdc_events` are the events of the outbox with both settings."""
    workspace = Workspace.open(northwind.lake_file, northwind.state)
    return lambda sql: workspace.open_lake.sql(with_views(sql, events_of(workspace)))


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
    parsed = sqlglot.parse_one(query, dialect=dialect)
    assert isinstance(parsed, sqlglot.exp.Query)
    return list(parsed.named_selects)


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

    def test_the_events_have_the_items_that_the_generator_made(self, ask: Ask) -> None:
        expected = _item_rows(_after())
        for query in ((EXAMPLE / "order_items.duckdb.sql").read_text(), _athena_as_duckdb()):
            assert _rows(ask(query)) == expected

    def test_each_transaction_leaves_one_event(self, northwind: RunningLake, ask: Ask) -> None:
        query = "SELECT aggregatetype, type, count(*) AS n FROM cdc_events GROUP BY ALL"
        found = {(row["aggregatetype"], row["type"]): row["n"] for row in ask(query).to_pylist()}
        assert found == _expected_events()
        in_database = {
            (row["aggregatetype"], row["type"]): row["n"]
            for row in northwind.rows(query.replace("ALL", "1, 2"))
        }
        assert found == in_database

    def test_the_board_shows_revenue_as_it_follows_from_the_generator_s_rows(self, ask: Ask) -> None:
        board = read_board(EXAMPLE / "boards" / "revenue.toml")
        found = {tile.title: shown(tile, ask(tile.sql), tile.title) for tile in board.tiles}
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
        shown_bubbles = {name: (x, y, size) for x, y, size, name in bubbles.points}
        assert shown_bubbles.keys() == {company[name] for name in by_order}
        for name, orders in by_order.items():
            quantity, value, count = shown_bubbles[company[name]]
            assert count == len(orders)
            assert quantity == pytest.approx(sum(sold for sold, _ in orders.values()) / count, abs=0.051)
            assert value == pytest.approx(float(sum(total for _, total in orders.values())) / count, abs=0.01)
        bars = found["Revenue by month"]
        assert isinstance(bars, Lines)
        assert sum(value or 0 for series in bars.series for value in series.values) == pytest.approx(
            float(sum(revenue.values())), abs=0.5
        )

    def test_customers_and_orders_are_partitioned(self, northwind: RunningLake) -> None:
        workspace = Workspace.open(northwind.lake_file, northwind.state)
        shop = _after()
        for table, values in (
            ("customers", {f"country={customer.country}" for customer in shop.customers.values()}),
            ("orders", {f"order_month={order.ordered_on:%Y-%m}" for order in shop.orders.values()}),
        ):
            folder = f"{workspace.lake.names.silver_bucket}/shop/public/{table}"
            entries = workspace.files.filesystem.get_file_info(pyarrow.fs.FileSelector(folder))
            assert values <= {entry.base_name for entry in entries}

    def test_the_router_leaves_one_table_for_each_type_of_aggregate(self, northwind: RunningLake) -> None:
        workspace = Workspace.open(northwind.lake_file, northwind.state)
        names = {str(table) for table in known_tables(workspace)} - {
            f"shop.public.{name}" for name in ("customers", "products", "orders", "order_items")
        }
        (source,) = workspace.lake.sources
        if source.routed_events is None:
            assert names == {"shop.public.cdc_events"}
        else:
            assert names == {"shop.outbox.customer", "shop.outbox.order"}
        status = read_status(workspace.state)
        states = {
            str(state.table): state.state for state in read_table_states(workspace, status, QuietTables())
        }
        assert {states[name] for name in names} == {"well"}

    # The last test, because it changes the database.
    def test_of_concurrent_transactions_the_last_event_has_the_changes_of_both(
        self, northwind: RunningLake
    ) -> None:
        order, one, other = 9_000, 1, 2
        with northwind.connect() as first, northwind.connect() as second:
            with first.transaction():
                first.execute(
                    "INSERT INTO orders SELECT %s, customer_id, ordered_on, order_month, NULL, 1"
                    " FROM orders LIMIT 1",
                    [order],
                )
                for product in (one, other):
                    first.execute("INSERT INTO order_items VALUES (%s, %s, 1, 1, 0)", [order, product])
            change = "UPDATE order_items SET quantity = %s WHERE order_id = %s AND product_id = %s"
            with second.transaction():
                second.execute(change, [20, order, other])
                with first.transaction():
                    first.execute(change, [10, order, one])
        query = (
            "SELECT type, payload -> 'items' -> 0 ->> 'quantity' AS one,"
            " payload -> 'items' -> 1 ->> 'quantity' AS other"
            f" FROM cdc_events WHERE aggregateid = '{order}' ORDER BY id"
        )
        assert [tuple(row.values()) for row in northwind.rows(query)] == [
            ("OrderPlaced", "1", "1"),
            ("OrderChanged", "10", "1"),
            ("OrderChanged", "10", "20"),
        ]


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
