"""The pages show what was read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from connectors.engines.database_log import DatabaseLog
from tests.console.views import ORDERS, USERS, blocked, commit, left_out, trends_of, view_of, well
from tributary.api.row_events import is_of, parse_key
from tributary.console.charts import commits_options
from tributary.console.console import Console
from tributary.console.pages.alerts import limits_of
from tributary.console.pages.ask import completions, quoted
from tributary.console.pages.frame import ago, cell, counted, length_text, shortened, table_path
from tributary.console.pages.pipeline import catching_up_text, left_text
from tributary.console.pages.problems import Problem, has_buttons, problem_of
from tributary.console.pages.quarantine import bytes_text, key_text, payload_text
from tributary.console.pages.table import commit_rows
from tributary.console.pages.tables import changes_of, rows_of
from tributary.console.view import CatchingUp
from tributary.contract.alerts import Alerts
from tributary.contract.online_snapshot import Failed, Request
from tributary.contract.pause import Pause
from tributary.contract.table_name import TableName


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
        "freshness": "5 min",
        "lag": "100 events",
        "unread_log_gb": "0.5 GB",
        "blocked": "any",
    }


def test_what_needs_a_person_is_listed() -> None:
    assert [table.table for table in view_of(blocked(), left_out()).to_look_at] == [ORDERS, USERS]
    assert view_of(well()).is_well


def test_a_table_that_is_left_out_says_that_it_comes_in_by_itself_and_has_no_buttons() -> None:
    problem = problem_of(left_out(), cast(Console, None))
    assert problem == Problem(
        "no key", "Add one. After that, the table comes in by itself while an ingest runs that follows."
    )
    assert not has_buttons(left_out())
    assert has_buttons(blocked())
    assert not has_buttons(None)


def test_a_table_that_could_not_be_read_again_says_why() -> None:
    request = Request("1", ORDERS, ("it was left out until now",), 0)
    table = replace(well(), snapshot=Failed(request, "the database refused a query"))
    problem = problem_of(table, cast(Console, None))
    assert problem is not None
    assert problem.reason == "it was left out until now. But the database refused a query."
    assert problem.remedy == "Run tributary snapshot web.public.orders."


def test_a_first_snapshot_is_shown_with_the_rows_that_are_still_to_come() -> None:
    events = TableName("web", "public", "events")
    behind = replace(well(behind=60), ended=100)
    log = DatabaseLog(first={ORDERS: 400, events: 50})
    view = replace(view_of(behind, left_out()), logs={"web": log})
    assert view.catching_up() == (
        CatchingUp(ORDERS, 40, 100, 400, is_new=True),
        CatchingUp(events, 0, 0, 50, is_new=True),
    )
    text = catching_up_text(100, 450, 40, trends_of(view), is_first=True)
    assert text == "Of about 450 rows, 100 are in Kafka and 40 in the lake"


def test_a_table_without_a_commit_is_part_of_a_first_snapshot_until_it_has_one() -> None:
    new = replace(well(behind=7), ended=7, commit=None)
    assert view_of(new).catching_up() == (CatchingUp(ORDERS, 0, 7, 7, is_new=True),)
    empty = replace(well(behind=0), ended=0, commit=None)
    assert view_of(empty).catching_up() == ()


def test_a_table_that_has_much_to_apply_is_shown_unless_it_stands() -> None:
    late = replace(well(behind=3000), ended=5000)
    view = replace(view_of(late), logs={"web": DatabaseLog()})
    assert view.catching_up() == (CatchingUp(ORDERS, 2000, 5000, 5000),)
    text = catching_up_text(5000, 5000, 2000, trends_of(view), is_first=False)
    assert text == "3,000 events in Kafka are not in the lake yet"
    paused = replace(late, paused=Pause(ORDERS, "2026-01-02T03:04:05+00:00"))
    for table in (well(), paused, replace(blocked(), behind=3000, ended=5000)):
        assert view_of(table).catching_up() == ()


def test_how_long_something_takes_is_in_seconds_or_minutes() -> None:
    assert left_text(timedelta(seconds=99)) == "99 s left"
    assert left_text(timedelta(hours=2)) == "120 min left"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b'{"schema": {}, "payload": {"id": 4}}', "id=4"),
        (b'{"order": 7, "line": "a"}', "order=7,line=a"),
        (b'{"name": "a=b,c"}', '{"name": "a=b,c"}'),
        (b'{"at": 1.5}', '{"at": 1.5}'),
        (b'{"id": true}', '{"id": true}'),
        (b'{"id": " AB "}', '{"id": " AB "}'),
        (b"7", None),
        (b"\xff", None),
        (None, None),
    ],
)
def test_a_quarantined_key_is_shown_as_the_page_of_a_rows_life_reads_it(key: Any, text: str | None) -> None:
    assert key_text(key) == text
    if key is not None and text is not None:
        document = json.loads(key)
        assert is_of(document.get("payload", document), parse_key(text))


def test_the_payload_of_a_quarantined_event_is_shown_without_its_schema() -> None:
    assert payload_text(b'{"schema": {"type": "struct"}, "payload": {"op": "u"}}') == '{\n  "op": "u"\n}'
    assert payload_text(b"\xffnot JSON") is None


def test_every_byte_of_a_quarantined_event_can_be_seen() -> None:
    assert (
        bytes_text(b"\x00\x07avro?\xff\n<b>\xc3\xa9</b>\t\x7f") == "\\x00\\x07avro?\\xff\n<b>é</b>\\x09\\x7f"
    )


def test_a_long_value_is_cut_and_says_how_long_it_is() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("x" * 10_240, 2) == "xx … (10,240 characters)"


def test_a_commit_is_a_row() -> None:
    (row,) = commit_rows([replace(commit(), written=9_000)])
    assert row["written"] == 9_000, "the grid sorts by the number"
    assert (row["events"], row["rows"], row["deletes"], row["p95"]) == (8, 7, 1, 3.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (["a", None, 1], '["a", null, 1]'),
        ({"é": [True]}, '{"é": [true]}'),
        (7, 7),
        (2**60, str(2**60)),
        (True, True),
        (Decimal("1.50"), "1.50"),
        (b"abc", "abc"),
        (b"\xff", "ff"),
        (b"\x00a", "0061"),
        ([1, None], "[1, null]"),
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


def test_texts_of_pages() -> None:
    now = datetime.now(UTC)
    assert ago(None) == "never"
    lengths = [timedelta(minutes=90), timedelta(days=1), timedelta(seconds=45), timedelta(hours=2)]
    assert [length_text(one) for one in lengths] == ["90 min", "1 d", "45 s", "2 h"]
    assert ago(now - timedelta(seconds=5)) == "5 s ago"
    assert ago(now - timedelta(hours=3)) == "3 h ago"
    assert (counted(1, "row"), counted(2000, "row")) == ("1 row", "2,000 rows")
    assert table_path("a.b.c/d?") == "/table/a.b.c%2Fd%3F"


def test_times_below_a_chart_of_commits_do_not_overlap_and_one_commit_is_not_drawn_within_days() -> None:
    axis = commits_options([commit()])["xAxis"]
    assert axis["axisLabel"]["hideOverlap"]
    assert axis["max"] - axis["min"] == 60_000
