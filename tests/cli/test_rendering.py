"""Values, tables and runs are shown correctly on a terminal, in a log and as JSON."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from spark_app.reports import Blocked, CaughtUp, Committed, Freshness, Started
from tributary.api.tables import UnknownTable, resolve_names
from tributary.api.values import rows_of
from tributary.cli import rendering
from tributary.cli.live_view import live_view, progress_table
from tributary.cli.rendering import (
    as_json,
    bytes_text,
    duration_text,
    moment_text,
    positions_text,
    print_table,
    value_text,
)
from tributary.contract.table_name import TableName
from tributary.operations.runs.run_progress import RunProgress

ORDERS, LINES = TableName("shop", "public", "orders"), TableName("shop", "public", "lines")
OTHER = TableName("erp", "public", "orders")


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_json_loses_no_digit_of_a_decimal(number: Decimal) -> None:
    assert Decimal(json.loads(json.dumps(as_json(number)))) == number


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.binary() | st.datetimes(), st.lists))
def test_everything_that_a_table_can_hold_is_json(value: object) -> None:
    json.loads(json.dumps(as_json({"value": value}), allow_nan=False))


def test_dates_and_moments_outside_python_s_range_are_shown_as_text() -> None:
    days = pa.array([2**31 - 1, -719_529, None], pa.int32()).cast(pa.date32())
    moments = pa.array([-(2**63) + 1, 253_402_300_800_000_000, 0]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"day": days, "moment": moments, "number": [1, 2, 3]})
    assert list(rows_of(table)) == [
        ("infinity", "-infinity", 1),
        ("0002-12-31 (BC)", "10000-01-01 00:00:00+00", 2),
        (None, "1970-01-01 00:00:00+00", 3),
    ]


_CELLS = st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=12)


@given(st.lists(st.lists(_CELLS, min_size=3, max_size=3)), st.booleans())
@example([["", "0 ", ""], [" a ", " 10 ", " "]], False)
def test_a_table_that_fits_looks_as_rich_would_draw_it(rows: list[list[str]], is_terminal: bool) -> None:
    def drawn() -> list[str]:
        shown = Console(file=io.StringIO(), width=200, force_terminal=is_terminal, color_system=None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rendering, "output", shown)
            patch.setattr(rendering, "Console", lambda **asked: Console(file=shown.file, **asked))
            print_table(("name", "größe", "c"), rows, (False, True))
        return [line.rstrip() for line in cast(io.StringIO, shown.file).getvalue().splitlines()]

    directly = drawn()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "_lines", lambda *_: None)
        assert drawn() == directly


def test_null_and_the_empty_text_look_different() -> None:
    assert (value_text(None), value_text("")) == ("null", "")


def test_moments_are_shown_in_utc() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
    assert moment_text(moment) == "2026-01-02 01:04:05.000678"
    assert moment_text(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02 00:00:00"


def test_bytes_are_text_where_they_are_text() -> None:
    assert bytes_text("größe".encode()) == "größe"
    assert bytes_text(b"\xff\x00") == "0xff00"


def test_positions_are_shown_for_one_and_for_several_partitions() -> None:
    assert [positions_text(found) for found in ({}, {0: 1234}, {1: 5, 0: 7})] == ["-", "1,234", "0:7 1:5"]


def _progress() -> RunProgress:
    fresh = Freshness(p50=1200, p95=3400, max=5000)
    commit = Committed(
        "shop.public.orders", "i", "2026-01-01T00:00:00+00:00", 9, 8, 1, 2, {0: 10}, fresh, 1.0
    )
    return RunProgress().after(Started(("shop.public.orders", "shop.public.lines"))).after(commit)


def test_a_log_of_a_run_has_one_line_a_change_and_none_for_waiting_tables() -> None:
    out = io.StringIO()
    with live_view(Console(file=out, width=200)) as show:
        show(_progress())
        show(_progress())
        show(_progress().after(CaughtUp("shop.public.orders")))
    lines = out.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "shop.public.orders: reading",
        "shop.public.orders: caught up",
    ]
    assert "8 rows written, 1 deletes, position 10, 1 commits, 2 quarantined" in lines[0]
    assert "fresh p50 1.2 s p95 3.4 s" in lines[0]


def test_a_failure_is_in_the_log_at_once() -> None:
    out = io.StringIO()
    with live_view(Console(file=out, width=200)) as show:
        show(_progress())
        show(_progress().after(Blocked("shop.public.lines", "the key [id] changed")))
        assert "shop.public.lines: blocked" in out.getvalue()
        assert "the key [id] changed" in out.getvalue()


def test_a_terminal_shows_a_single_view_of_all_tables() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(progress_table(_progress()))
    header, lines, orders = (line.split() for line in out.getvalue().splitlines())
    assert header[0] == "table"
    assert (lines[0], lines[-1]) == ("shop.public.lines", "waiting")
    assert orders == ["shop.public.orders", "8", "1", "10", "1.2", "s", "3.4", "s", "1", "2", "reading"]


def test_tables_can_be_named_by_each_of_their_names_and_by_patterns() -> None:
    known = [ORDERS, LINES, OTHER]
    assert resolve_names(["orders"], known) == (OTHER, ORDERS)
    assert resolve_names(["shop.public.orders", "lines"], known) == (LINES, ORDERS)
    assert resolve_names(["shop.*"], known) == (LINES, ORDERS)
    assert resolve_names([], known) == ()
    with pytest.raises(UnknownTable, match=r"Did you mean .*shop\.public\.orders"):
        resolve_names(["lines", "shop.public.order"], known)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0, "0.0 s"),
        (1250, "1.2 s"),
        (172_799_999, "172800.0 s"),
        (1_795_646_981_000, "20,782 days"),
    ],
)
def test_the_age_of_events_in_old_files_is_told_in_days(milliseconds: int | None, text: str) -> None:
    assert duration_text(milliseconds) == text
