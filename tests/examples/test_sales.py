"""The derived tables of the sales example give the same numbers as the rows that its generator makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from aws_cdk import App
from confluent_kafka import Consumer, TopicPartition

from examples.sales import generate
from examples.sales.run import FIRST_PURCHASES, known_totals
from examples.sales.shop import (
    OPENING,
    Event,
    Purchase,
    Rates,
    Restocked,
    SentAgain,
    Sold,
    generate_products,
    generate_stock,
    known_purchases,
    late_purchases,
    stock_after,
    trade,
)
from examples.sales.topics import kafka_topic, sending
from stacks.assembly import assemble
from stacks.synthesized import read_templates, resources_of
from tests.examples.conftest import PROJECT, RunningLake, kept_running
from tests.stacks.conftest import FLAGS
from tests.stacks.lakes import write_assets
from tributary.contract.boards.board import read_board
from tributary.contract.derivations import lineage, read_derivations
from tributary.contract.lake import read_lake
from tributary.operations.boards.answers import Figure, Lines, shown
from tributary.operations.workspace import Workspace

EXAMPLE = PROJECT / "examples" / "sales"
LAKE_FILE = EXAMPLE / "lake.toml"
KNOWN_FILE = EXAMPLE / "known" / "purchases.jsonl"
PURCHASES, LATE, SEED = 240, 8, 3
WATERMARK = timedelta(minutes=10)

Key = TypeVar("Key")
Ask = Callable[[str], pa.Table]
Total = tuple[int, int, Decimal]
"""Purchases, pieces and revenue."""


def _events() -> list[Event]:
    return list(trade(PURCHASES, SEED))


def _late() -> list[Sold]:
    return list(late_purchases(LATE, PURCHASES, SEED))


def _bought(events: Iterable[Event]) -> list[Purchase]:
    return [event.purchase for event in events if isinstance(event, Sold)]


def _totals(rows: Iterable[tuple[Key, Purchase]]) -> dict[Key, Total]:
    found: dict[Key, Total] = defaultdict(lambda: (0, 0, Decimal(0)))
    for key, purchase in rows:
        count, pieces, revenue = found[key]
        found[key] = (count + 1, pieces + purchase.quantity, revenue + purchase.amount)
    return dict(found)


def _windows(purchase: Purchase) -> list[datetime]:
    """Return the starts of the two windows of ten minutes that have the purchase."""
    begin = purchase.purchased_at.replace(second=0, microsecond=0)
    begin -= timedelta(minutes=begin.minute % 5)
    return [begin, begin - timedelta(minutes=5)]


def test_a_seed_always_gives_the_same_products_stock_and_trade() -> None:
    assert generate_products(5) == generate_products(5) != generate_products(6)
    assert generate_stock(5) == generate_stock(5) != generate_stock(6)
    assert list(trade(60, 5)) == list(trade(60, 5)) != list(trade(60, 6))
    assert {type(event) for event in _events()} == {Sold, SentAgain, Restocked}


def test_the_rates_set_how_often_purchases_come_and_how_many_are_delayed_or_repeated() -> None:
    slow, fast = (_bought(trade(200, rates=Rates(rate, delayed=0))) for rate in (2, 20))
    spans = [purchases[-1].purchased_at - OPENING for purchases in (slow, fast)]
    assert spans[0] / spans[1] == pytest.approx(10, rel=0.01)
    assert slow == sorted(slow, key=lambda one: one.purchased_at)
    delayed = _bought(trade(200, rates=Rates(2, delayed=0.3)))
    assert 30 < sum(one != other for one, other in zip(slow, delayed, strict=True)) < 90
    for share, least, most in ((0.0, 0, 0), (0.3, 30, 90)):
        repeated = [e for e in trade(200, rates=Rates(repeated=share)) if isinstance(e, SentAgain)]
        assert least <= len(repeated) <= most


def test_all_purchases_of_the_trade_are_in_time_and_all_late_ones_are_not() -> None:
    latest = OPENING
    for purchase in _bought(_events()):
        assert purchase.purchased_at > latest - WATERMARK
        latest = max(latest, purchase.purchased_at)
    assert all(purchase.purchased_at < latest - WATERMARK for purchase in _bought(_late()))
    numbers = [purchase.purchase_id for purchase in _bought([*_events(), *_late()])]
    assert sorted(numbers) == list(range(1, PURCHASES + LATE + 1))


def test_the_known_file_is_what_the_generator_makes() -> None:
    assert KNOWN_FILE.read_text().splitlines() == [purchase.as_json for purchase in known_purchases()]


def test_the_known_totals_are_those_of_the_known_file() -> None:
    columns = "{country: 'VARCHAR', quantity: 'INTEGER', amount: 'DECIMAL(9, 2)'}"
    query = f"""SELECT country, count(*), sum(quantity), sum(amount)
        FROM read_json('{KNOWN_FILE}', columns = {columns}) GROUP BY country ORDER BY country"""
    with duckdb.connect() as engine:
        assert known_totals() == engine.sql(query).fetchall()
    assert len(known_totals()) == 8


def test_the_files_for_another_kafka_have_what_the_events_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--purchases", str(PURCHASES), "--late", str(LATE), "--seed", str(SEED)]
    monkeypatch.setattr(sys, "argv", ["generate", str(tmp_path), *options])
    generate.main()
    lines = (tmp_path / "purchases.jsonl").read_text().splitlines()
    repeated = [event.purchase for event in _events() if isinstance(event, SentAgain)]
    expected = [*_bought([*_events(), *_late()]), *repeated]
    assert sorted(lines) == sorted(purchase.as_json for purchase in expected)
    assert (tmp_path / "known_purchases.jsonl").read_bytes() == KNOWN_FILE.read_bytes()
    assert len((tmp_path / "products.csv").read_text().splitlines()) == len(generate_products(SEED))
    first = next(iter(generate_stock(SEED).items()))
    assert (tmp_path / "inventories.csv").read_text().startswith(f"{first[0]},{first[1]}\n")


def test_each_query_can_be_used_and_reads_what_it_should() -> None:
    found = read_derivations(read_lake(LAKE_FILE), EXAMPLE)
    assert found.errors == {}
    assert set(lineage(found.ordered)) == {
        ("country_totals", "topic known_purchases"),
        ("window_sales", "topic timely_purchases"),
        ("running_totals", "topic purchases"),
        ("enriched_purchases", "topic purchases"),
        ("enriched_purchases", "products"),
        ("category_sales", "enriched_purchases"),
        ("low_stock", "inventories"),
        ("low_stock", "products"),
    }


def test_the_queries_without_windows_give_the_generator_s_numbers_in_duckdb_too() -> None:
    events = [*_events(), *_late()]
    with duckdb.connect() as engine:
        for name, rows in {
            "purchases": [vars(purchase) for purchase in _bought(events)],
            "products": [vars(product) for product in generate_products(SEED).values()],
            "inventories": [
                {"product_id": number, "in_stock": left}
                for number, left in stock_after(generate_stock(SEED), events).items()
            ],
        }.items():
            engine.register(name, pa.Table.from_pylist(rows))
        found = {}
        for name in ("running_totals", "enriched_purchases", "category_sales", "low_stock"):
            text = EXAMPLE.joinpath("queries", f"{name}.sql").read_text()
            engine.execute(f"CREATE TABLE {name} AS {sqlglot.transpile(text, 'spark', 'duckdb')[0]}")
            found[name] = _rows(engine.sql(f"SELECT * FROM {name}").to_arrow_table())
        board = read_board(EXAMPLE / "boards" / "sales.toml")
        (revenue,) = (tile for tile in board.tiles if tile.title == "Revenue")
        on_board = engine.execute(revenue.sql).fetchone()
    bought = _bought(events)
    expected = _totals((purchase.country, purchase) for purchase in bought)
    assert {country: tuple(total) for country, *total in found["running_totals"]} == expected
    assert len(found["enriched_purchases"]) == len(bought)
    assert sum(pieces for _, _, pieces, *_ in found["category_sales"]) == sum(p.quantity for p in bought)
    assert all(left < 25 for _, _, left in found["low_stock"])
    assert on_board == (sum(purchase.amount for purchase in bought),)


def test_the_same_lake_file_synthesizes_with_serverless_kafka_and_spark(tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"
    app = App(outdir=str(out), context=FLAGS)
    assemble(app, read_lake(LAKE_FILE), LAKE_FILE, write_assets(tmp_path))
    app.synth()
    resources = [resource for _, _, resource in resources_of(read_templates(out))]
    kinds = {resource["Type"] for resource in resources}
    assert {"AWS::MSK::ServerlessCluster", "AWS::EMRServerless::Application"} <= kinds
    assert not {"AWS::MSK::Cluster", "AWS::EMR::Cluster"} & kinds
    policies = json.dumps([one for one in resources if one["Type"].startswith("AWS::IAM::")])
    for topic in ("purchases", "known-purchases", "running-totals", "enriched-purchases"):
        assert f"/sales-{topic}" in policies
    queries = {path.name for path in EXAMPLE.glob("queries/*.sql")}
    assert {path.name for path in out.glob("asset.*/queries/*.sql")} == queries
    assert len(queries) == 6


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    """The example after a small trade."""
    lake = RunningLake(LAKE_FILE, tmp_path_factory.mktemp("sales") / "state")
    size = ["--purchases", str(PURCHASES), "--late", str(LATE), "--rate", "60", "--seed", str(SEED)]
    with kept_running(lake, sys.executable, "-m", "examples.sales.run", *size) as said:
        assert f"derived.tables.window_sales: {LATE} rows came later than the watermark allows" in said
        yield lake


@pytest.fixture(scope="module")
def ask(sales: RunningLake) -> Ask:
    return Workspace.open(sales.lake_file, sales.state).open_lake.sql


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
class TestOnARunningPipeline:
    """The lake of the example after its trade."""

    def test_the_known_file_gives_the_known_totals(self, ask: Ask) -> None:
        query = "SELECT country, purchases, pieces, revenue FROM country_totals ORDER BY country"
        assert _rows(ask(query)) == known_totals()

    def test_each_purchase_counts_once_in_the_running_totals(self, ask: Ask, sales: RunningLake) -> None:
        bought = _bought([*_events(), *_late()])
        expected = _totals((purchase.country, purchase) for purchase in bought)
        rows = _rows(ask("SELECT country, purchases, pieces, revenue FROM running_totals"))
        assert {country: tuple(total) for country, *total in rows} == expected

        messages = _messages(sales, "sales-running-totals")
        told = [
            (value["country"], value["purchases"], value["pieces"], value["revenue"]) for value in messages
        ]
        assert {country: tuple(total) for country, *total in told} == expected, "the last message of each"
        assert len(told) > len(expected), "the totals ran while the purchases came"
        for country in expected:
            counts = [count for name, count, *_ in told if name == country]
            assert counts == sorted(counts)

    def test_windows_have_the_purchases_of_their_ten_minutes_but_not_the_late_ones(self, ask: Ask) -> None:
        def expected(events: Iterable[Event]) -> Mapping[tuple[datetime, str], Total]:
            bought = _bought(events)
            return _totals(((start, one.country), one) for one in bought for start in _windows(one))

        query = "SELECT window_start, country, purchases, revenue FROM window_sales"
        found = {
            (start.astimezone(UTC), country): (count, revenue)
            for start, country, count, revenue in _rows(ask(query))
        }
        in_time = {key: (count, revenue) for key, (count, _, revenue) in expected(_events()).items()}
        assert found == in_time
        assert expected([*_events(), *_late()]) != expected(_events())

    def test_each_purchase_has_its_product_in_the_lake_and_in_the_topic(
        self, ask: Ask, sales: RunningLake
    ) -> None:
        products = generate_products(SEED)
        expected = {}
        for purchase in _bought([*_events(), *_late()]):
            product = products[purchase.product_id]
            margin = purchase.amount - purchase.quantity * product.cost
            row = (
                purchase.country,
                product.name,
                product.category,
                purchase.quantity,
                purchase.amount,
                margin,
            )
            expected[purchase.purchase_id] = row
        columns = ("country", "product", "category", "quantity", "amount", "margin")
        rows = _rows(ask(f"SELECT purchase_id, {', '.join(columns)} FROM enriched_purchases"))
        assert {number: tuple(row) for number, *row in rows} == expected
        messages = _messages(sales, "sales-enriched-purchases")
        told = {value["purchase_id"]: tuple(value[name] for name in columns) for value in messages}
        assert told == expected

    def test_totals_by_category_follow_from_the_enriched_purchases(self, ask: Ask) -> None:
        products = generate_products(SEED)
        bought = _bought([*_events(), *_late()])
        expected = _totals((products[one.product_id].category, one) for one in bought)
        rows = _rows(ask("SELECT category, purchases, pieces, revenue FROM category_sales"))
        assert {category: tuple(total) for category, *total in rows} == expected

    def test_products_that_were_restocked_no_longer_run_low(self, ask: Ask) -> None:
        events = [*_events(), *_late()]
        at_first = stock_after(generate_stock(SEED), events[:FIRST_PURCHASES])
        at_last = stock_after(generate_stock(SEED), events)
        low = {number: left for number, left in at_last.items() if left < 25}
        assert low, "the trade of the test leaves a product with little stock"
        assert any(left < 25 <= at_last[number] for number, left in at_first.items())
        assert dict(_rows(ask("SELECT product_id, in_stock FROM low_stock"))) == low

    def test_the_board_shows_the_revenue_that_follows_from_the_generator_s_rows(self, ask: Ask) -> None:
        board = read_board(EXAMPLE / "boards" / "sales.toml")
        found = {tile.title: shown(tile, ask(tile.sql), tile.title) for tile in board.tiles}
        revenue = sum(purchase.amount for purchase in _bought([*_events(), *_late()]))
        figure, windows = found["Revenue"], found["Revenue in windows of ten minutes"]
        assert isinstance(figure, Figure)
        assert figure.value == revenue
        assert isinstance(windows, Lines)
        (series,) = windows.series
        in_time = sum(purchase.amount for purchase in _bought(_events()))
        assert sum(value or 0 for value in series.values) == pytest.approx(float(2 * in_time))

    # The last test, because it changes the database and the topic.
    def test_a_product_that_changes_is_in_new_purchases_only_and_a_repeated_purchase_counts_never_again(
        self, ask: Ask, sales: RunningLake
    ) -> None:
        workspace = Workspace.open(sales.lake_file, sales.state)
        bought = _bought(_events())
        first = next(purchase for purchase in bought if purchase.product_id == bought[-1].product_id)
        new = replace(bought[-1], purchase_id=9_000)
        with sales.connect() as session:
            change = "UPDATE products SET category = 'Antiques' WHERE product_id = %s"
            session.execute(change, [new.product_id])
        _command(sales, "ingest")
        with sending(workspace.settings.kafka_bootstrap, kafka_topic(workspace.lake, "purchases")) as sender:
            sender.send_all([first, new])
        _command(sales, "derive", "running_totals", "enriched_purchases", "category_sales")
        categories = "SELECT category FROM enriched_purchases WHERE purchase_id = "
        assert ask(f"{categories} {new.purchase_id}").to_pylist() == [{"category": "Antiques"}]
        old = generate_products(SEED)[new.product_id].category
        assert ask(f"{categories} {first.purchase_id}").to_pylist() == [{"category": old}]
        antiques = ask("SELECT purchases FROM category_sales WHERE category = 'Antiques'")
        assert antiques.to_pylist() == [{"purchases": 1}]
        counted = ask("SELECT sum(purchases)::bigint AS n FROM running_totals").to_pylist()
        assert counted == [{"n": PURCHASES + LATE + 1}]


def _command(sales: RunningLake, *command: str) -> None:
    program = str(Path(sys.executable).with_name("tributary"))
    done = subprocess.run(
        [program, *command], env=sales.variables, capture_output=True, text=True, cwd=PROJECT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _messages(sales: RunningLake, topic: str) -> list[dict[str, Any]]:
    """Return the values in a topic, in the order of each partition. Numbers with a point are decimals."""
    bootstrap = Workspace.open(sales.lake_file, sales.state).settings.kafka_bootstrap
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    found = []
    try:
        for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                messages = consumer.consume(500, timeout=10)
                assert messages, "Kafka has more messages, but sends none"
                found += [json.loads(one.value() or b"null", parse_float=Decimal) for one in messages]
    finally:
        consumer.close()
    return found


def _rows(answer: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.to_pylist()]
