"""The pages show what was read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.console.views import ORDERS, USERS, blocked, commit, left_out, trends_of, view_of, well
from tributary.console.pages.alerts import limits_of
from tributary.console.pages.ask import as_csv, completions, quoted
from tributary.console.pages.frame import ago, cell, counted, table_path
from tributary.console.pages.table import commit_rows
from tributary.console.pages.tables import changes_of, rows_of
from tributary.contract.alerts import Alerts


def test_the_grid_has_a_row_for_each_table_also_without_a_commit() -> None:
    view = view_of(well(), left_out())
    rows = rows_of(view, trends_of(view))
    assert rows[str(ORDERS)] == {
        "table": str(ORDERS),
        "state": "well",
        "order": 4,
        "behind": 5,
        "quarantined": 3,
        "last_commit": "2026-01-02 03:04:05",
        "events": 8,
        "p50": 2.0,
        "p95": 3.0,
        "trend": [3.0],
        "rows": 7,
        "verified": "2026-01-02 03:04:05",
    }
    assert rows[str(USERS)]["state"] == "left out"
    assert rows[str(USERS)]["last_commit"] is None
    assert rows[str(USERS)]["order"] < rows[str(ORDERS)]["order"], "what needs a person comes first"


def test_the_grid_gets_only_what_has_changed() -> None:
    first = view_of(well(), left_out())
    before = rows_of(first, trends_of(first))
    assert changes_of(before, before) == {}
    second = view_of(well(behind=6))
    now = rows_of(second, trends_of(second))
    assert changes_of(before, now) == {"update": [now[str(ORDERS)]], "remove": [{"table": str(USERS)}]}
    assert changes_of({}, now) == {"add": [now[str(ORDERS)]]}


def test_only_rules_that_count_are_listed() -> None:
    rules = Alerts(freshness=timedelta(minutes=5), lag=100, unread_log_gb=0.5, webhook_env="HOOK")
    assert limits_of(rules) == {
        "freshness": "0:05:00",
        "lag": "100 events",
        "unread_log_gb": "0.5 GB",
        "blocked": "any",
    }


def test_what_needs_a_person_is_listed() -> None:
    assert [table.table for table in view_of(blocked(), left_out()).to_look_at] == [ORDERS, USERS]
    assert view_of(well()).is_well


def test_a_commit_is_a_row() -> None:
    (row,) = commit_rows([commit()])
    assert (row["events"], row["rows"], row["deletes"], row["p95"]) == (8, 7, 1, 3.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (7, 7),
        (2**60, str(2**60)),
        (True, True),
        (Decimal("1.50"), "1.50"),
        (b"abc", "abc"),
        (b"\xff", "ff"),
        ([1, None], "[1, None]"),
        ("<script>", "<script>"),
    ],
)
def test_a_cell_shows_a_value_exactly(value: Any, shown: Any) -> None:
    assert cell(value) == shown


def test_completions_are_all_tables_and_each_column_once() -> None:
    offered = list(completions({ORDERS: ["id", "price"], USERS: ["id"]}))
    assert {"label": "public.orders", "type": "class", "detail": "table"} in offered
    assert [one["detail"] for one in offered if one["label"] == "id"] == ["orders and 1 more"]
    assert [one["detail"] for one in offered if one["label"] == "price"] == ["orders"]


@pytest.mark.parametrize(
    ("name", "text"), [("id", "id"), ("order", '"order"'), ("First Name", '"First Name"'), ('a"b', '"a""b"')]
)
def test_a_completed_column_is_quoted_where_sql_needs_it(name: str, text: str) -> None:
    assert quoted(name) == text


def test_csv_has_titles_and_quotes() -> None:
    found = pa.table({"a": [1, None], 'b"': ["x,y", "z"]})
    assert as_csv(found).splitlines() == ['a,"b"""', '1,"x,y"', ",z"]


def test_texts_of_pages() -> None:
    now = datetime.now(UTC)
    assert ago(None) == "never"
    assert ago(now - timedelta(seconds=5)) == "5 s ago"
    assert ago(now - timedelta(hours=3)) == "3 h ago"
    assert (counted(1, "row"), counted(2000, "row")) == ("1 row", "2,000 rows")
    assert table_path("a.b.c/d?") == "/table/a.b.c%2Fd%3F"
