"""Functions of MySQL have the answers of its manual, computed by DuckDB."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from sqlglot import parse_one

from tributary.sql_server.table_names import NotAnswered, question_of


def _answer(value: str) -> Any:
    sql = question_of(parse_one(f"SELECT {value} AS v", read="mysql"), None).sql
    (row,) = duckdb.connect().execute(sql).fetchall()
    return row[0]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("DAYOFWEEK('2007-02-03')", 7),
        ("DAYOFWEEK('2026-11-29')", 1),
        ("WEEKDAY('2008-02-03 22:23:00')", 6),
        ("WEEKDAY('2007-11-06')", 1),
        ("WEEK('2008-02-20')", 7),
        ("WEEK('2008-02-20', 0)", 7),
        ("WEEK('2000-01-01', 0)", 0),
        ("WEEK('2008-12-31', 3)", 1),
        ("WEEK('2026-01-05', 5)", 1),
        ("YEARWEEK('1987-01-01')", 198652),
        ("YEARWEEK('2026-01-01')", 202552),
        ("YEARWEEK('2026-01-01', 3)", 202601),
        ("TO_DAYS('2007-10-07')", 733321),
        ("LENGTH('é')", 2),
        ("CHAR_LENGTH('é')", 1),
        ("UNIX_TIMESTAMP('2015-11-13 10:20:19')", 1447410019),
        ("ADDDATE(DATE('2008-01-02'), 31)", date(2008, 2, 2)),
        ("SUBDATE(DATE('2008-01-02'), INTERVAL 31 DAY)", date(2007, 12, 2)),
        ("(1 + 2) * 2", 6),
    ],
)
def test_a_function_answers_as_in_mysql_s_manual(value: str, answer: Any) -> None:
    found = _answer(value)
    assert (found.date() if isinstance(found, datetime) else found) == answer


def test_the_week_of_a_bi_tool_begins_on_its_sunday_or_monday() -> None:
    """The expressions are those with which Superset groups times by week in MySQL."""
    sunday = "DATE(DATE_SUB(DATE '2026-11-28', INTERVAL DAYOFWEEK(DATE '2026-11-28') - 1 DAY))"
    monday = (
        "DATE(DATE_SUB(DATE '2026-11-29', "
        "INTERVAL DAYOFWEEK(DATE_SUB(DATE '2026-11-29', INTERVAL 1 DAY)) - 1 DAY))"
    )
    assert _answer(sunday) == date(2026, 11, 22)
    assert _answer(monday) == date(2026, 11, 23)


@pytest.mark.parametrize("value", ["WEEK('2026-01-01', 4)", "YEARWEEK('2026-01-01', 7)"])
def test_a_mode_of_weeks_without_a_counterpart_is_refused(value: str) -> None:
    with pytest.raises(NotAnswered, match="this form of a function is not translated") as caught:
        _answer(value)
    assert caught.value.expected is not None
    assert caught.value.expected.startswith("mode 0")
