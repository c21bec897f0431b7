"""The states of tables name every table that needs a person, also one that the lake does not have."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spark_app.ledger.ledger import Ledger
from tributary.api.timeline import Commit
from tributary.contract.lake import parse_lake
from tributary.contract.online_snapshot import Failed, Noticed, Record, Request, Requested
from tributary.contract.table_name import TableName
from tributary.operations.table_lag import TableLag
from tributary.operations.table_states import TableState, cut_off_sources, table_states

TABLE = TableName("shop", "public", "orders")
COMMIT = Commit(
    "20260102030400000", datetime(2026, 1, 2, tzinfo=UTC), 7, 0, Ledger("shop.orders", positions={0: 9})
)
REQUEST = Request("id", TABLE, ("some of its rows can have come before it was followed",), 0)


def _states(record: Record) -> tuple[TableState, ...]:
    return table_states((), {}, {}, {}, {TABLE: record}, ingests=True)


@pytest.mark.parametrize("record", [Failed(REQUEST, "the connector cannot read it"), Noticed(REQUEST)])
def test_a_table_that_is_not_in_the_lake_and_has_to_be_read_by_hand_is_shown(record: Record) -> None:
    (state,) = _states(record)
    assert (state.table, state.state, state.is_well) == (TABLE, "differs", False)


def test_a_table_whose_first_events_are_on_their_way_is_not_shown_yet() -> None:
    assert _states(Requested(REQUEST)) == ()


@pytest.mark.parametrize(
    ("behind", "commit", "ingests", "state"),
    [
        (0, None, True, "well"),
        (7, None, False, "waiting"),
        (7, None, True, "loading"),
        (7, COMMIT, True, "well"),
    ],
)
def test_a_table_whose_first_events_are_being_applied_is_loading(
    behind: int, commit: Commit | None, ingests: bool, state: str
) -> None:
    lag = TableLag(TABLE, behind, commit)
    (found,) = table_states((lag,), {}, {}, {}, {}, ingests=ingests)
    assert (found.state, found.is_well) == (state, True)


def test_a_table_is_cut_off_while_the_connector_of_its_source_does_not_run() -> None:
    lake = parse_lake("""
        lake = { name = "shop" }
        [source.web]
        engine = "postgres"
        database = "web"
        tables = ["public.*"]
        [source.crm]
        engine = "mariadb"
        tables = ["crm.*"]
        [source.items]
        engine = "dynamodb"
        stream = "changes"
        tables = ["*"]
        """)
    assert cut_off_sources(lake, {"tributary-shop-web-debezium", "tributary-shop-bronze-iceberg"}) == {"crm"}
    assert cut_off_sources(lake, ()) == {"web", "crm"}


@pytest.mark.parametrize(
    ("behind", "commit", "ingests", "state"),
    [(0, COMMIT, True, "cut off"), (7, COMMIT, True, "cut off"), (7, COMMIT, False, "waiting")],
)
def test_a_table_that_is_cut_off_is_not_well_although_it_has_all_events_that_there_are(
    behind: int, commit: Commit, ingests: bool, state: str
) -> None:
    (found,) = table_states((TableLag(TABLE, behind, commit),), {}, {}, {}, {}, ingests=ingests)
    assert replace(found, cut_off=True).state == state
