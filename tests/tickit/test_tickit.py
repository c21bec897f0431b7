"""The demo's rows keep every promise of their schema, and its workload holds every kind of change."""

from __future__ import annotations

import random
from decimal import Decimal
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tributary.tickit import workload
from tributary.tickit.generator import generate
from tributary.tickit.schema import TABLES

SCALES = st.floats(min_value=0, max_value=0.01)


def _column(rows: dict[str, list[dict[str, object]]], table: str, column: str) -> list[object]:
    return [row[column] for row in rows[table]]


def _named(scale: float, seed: int) -> dict[str, list[dict[str, object]]]:
    generated = generate(scale, seed)
    return {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in generated[table.name]]
        for table in TABLES
    }


@given(SCALES, st.integers())
@settings(max_examples=20, deadline=None)
def test_every_reference_leads_to_a_row(scale: float, seed: int) -> None:
    rows = _named(scale, seed)
    references = {
        ("event", "venueid"): ("venue", "venueid"),
        ("event", "catid"): ("category", "catid"),
        ("event", "dateid"): ("date", "dateid"),
        ("listing", "sellerid"): ("users", "userid"),
        ("listing", "eventid"): ("event", "eventid"),
        ("sales", "listid"): ("listing", "listid"),
        ("sales", "sellerid"): ("users", "userid"),
        ("sales", "buyerid"): ("users", "userid"),
        ("sales", "eventid"): ("event", "eventid"),
    }
    for source, target in references.items():
        assert set(_column(rows, *source)) <= set(_column(rows, *target)), source


@given(SCALES, st.integers())
@settings(max_examples=20, deadline=None)
def test_keys_and_user_names_are_unique(scale: float, seed: int) -> None:
    rows = _named(scale, seed)
    for table in TABLES:
        keys = _column(rows, table.name, table.columns[0])
        assert len(set(keys)) == len(keys), table.name
    names = _column(rows, "users", "username")
    assert len(set(names)) == len(names)


@given(SCALES, st.integers())
@settings(max_examples=20, deadline=None)
def test_a_sale_agrees_with_its_listing(scale: float, seed: int) -> None:
    rows = _named(scale, seed)
    listings = {row["listid"]: row for row in rows["listing"]}
    for sale in rows["sales"]:
        listing = listings[sale["listid"]]
        assert (sale["sellerid"], sale["eventid"]) == (listing["sellerid"], listing["eventid"])
        assert sale["buyerid"] != sale["sellerid"]
        assert sale["qtysold"] <= listing["numtickets"]  # type: ignore[operator]
        assert sale["pricepaid"] == sale["qtysold"] * listing["priceperticket"]  # type: ignore[operator]
        assert isinstance(sale["commission"], Decimal)
        assert sale["commission"].as_tuple().exponent == -2


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    assert generate(0.002, 7) == generate(0.002, 7)
    assert generate(0.002, 7) != generate(0.002, 8)


def test_full_scale_has_the_row_counts_of_the_sample_database() -> None:
    assert {table.name: table.rows_at(1.0) for table in TABLES} == {
        "category": 11,
        "date": 365,
        "venue": 202,
        "users": 49_990,
        "event": 8_798,
        "listing": 192_497,
        "sales": 172_456,
    }


@pytest.mark.parametrize("seed", range(3))
def test_even_the_shortest_plan_has_every_rare_transaction(seed: int) -> None:
    for transactions in (5, 10, 400):
        plan = list(workload.schedule(workload.Plan(transactions, rate=None, seed=seed)))
        assert len(plan) == transactions
        assert plan.count(workload.add_sales_channel) == 1
        assert plan.count(workload.rebuild_calendar) == 1
        assert plan.count(workload.give_user_another_id) == 2


def test_an_ordinary_plan_holds_every_ordinary_transaction() -> None:
    plan = set(workload.schedule(workload.Plan(500, rate=None)))
    assert {
        workload.sell_tickets,
        workload.change_price,
        workload.list_tickets,
        workload.refund_sale,
        workload.change_preferences,
        workload.retag_event,
        workload.sign_up,
    } <= plan


@pytest.mark.parametrize("spared", [0, 10])
def test_a_plan_picks_every_listing_but_the_spared_ones(spared: int) -> None:
    exchange = workload.Exchange(mock.Mock(), random.Random(1), spared)
    exchange.last_listing = 30
    assert {exchange.pick_listing() for _ in range(1_000)} == set(range(spared + 1, 31))
