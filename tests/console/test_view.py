"""The pages show what was read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.console.views import ORDERS, USERS, blocked, commit, left_out, view_of, well
from tributary.console.pages.ask import as_csv
from tributary.console.pages.frame import ago, cell, counted, table_path
from tributary.console.pages.table import commit_rows
from tributary.console.pages.tables import rows_of


def test_the_grid_has_a_row_for_each_table_also_without_a_commit() -> None:
    rows = {row["table"]: row for row in rows_of(view_of(well(), left_out()))}
    assert rows[str(ORDERS)] == {
        "table": str(ORDERS),
        "state": "well",
        "behind": 5,
        "last_commit": "2026-01-02 03:04:05",
        "events": 8,
        "p50": 2.0,
        "p95": 3.0,
        "verified": "2026-01-02 03:04:05",
    }
    assert rows[str(USERS)]["state"] == "left out"
    assert rows[str(USERS)]["last_commit"] is None


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
