"""Rates and times that are left come from two looks at the lake, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.console.views import NOW, ORDERS, USERS, commit, trends_of, view_of, well
from tributary.console.charts import rates_options
from tributary.console.trends import Rates, Trends
from tributary.console.view import LakeView
from tributary.contract.online_snapshot import Reading, Request
from tributary.operations.table_states import TableState


def look(after: float, ended: int, behind: int, *others: TableState) -> LakeView:
    """A look at a lake some seconds later."""
    orders = replace(well(behind), ended=ended)
    return replace(view_of(orders, *others), at=NOW + timedelta(seconds=after))


def test_rates_are_the_events_that_came_and_were_applied_in_a_second() -> None:
    (rates,) = trends_of(look(0, 100, 10), look(2, 140, 20)).rates
    assert (rates.entered, rates.applied) == (20.0, 15.0)


def test_one_look_has_no_rate() -> None:
    assert trends_of(look(0, 100, 10)).rates == ()


def test_a_rate_forgets_what_was_long_ago() -> None:
    looks = (
        look(seconds, 100 if seconds < 60 else 100 + 10 * (seconds - 60), 0) for seconds in range(0, 91, 2)
    )
    rates = trends_of(*looks).rates
    assert rates[0].entered == 0
    assert rates[-1].entered == pytest.approx(10)


def test_a_new_table_and_a_topic_that_was_created_again_add_nothing() -> None:
    new = replace(well(0), table=USERS, ended=1000)
    (rates,) = trends_of(look(0, 100, 0), look(2, 7, 0, new)).rates
    assert (rates.entered, rates.applied) == (0.0, 0.0)


def test_the_trend_has_each_commit_once() -> None:
    trends = trends_of(look(0, 1, 0), look(2, 1, 0))
    assert trends.freshness(ORDERS) == (3.0,)
    later = replace(well(), commit=replace(commit(), instant="20260102030500000"))
    trends.add(view_of(later))
    assert trends.freshness(ORDERS) == (3.0, 3.0)
    assert trends.freshness(USERS) == ()


def reading(rows: int) -> Reading:
    return Reading(Request("1", ORDERS, ("asked",), 0), None, {}, 0, "f", rows, 1000)


def snapshots(*rows: int) -> Iterator[LakeView]:
    for second, count in enumerate(rows):
        view = view_of(replace(well(), snapshot=reading(count)))
        yield replace(view, at=NOW + timedelta(seconds=second))


def test_the_time_that_a_snapshot_still_takes_follows_from_its_rate() -> None:
    trends = trends_of(*snapshots(100, 150, 200))
    assert trends.time_left(ORDERS, reading(200)) == timedelta(seconds=16)


def test_a_snapshot_that_does_not_move_has_no_time_left_to_tell() -> None:
    assert trends_of(*snapshots(100, 100)).time_left(ORDERS, reading(100)) is None
    assert Trends().time_left(ORDERS, reading(100)) is None


def test_the_time_to_apply_events_follows_from_the_rate_at_which_they_get_fewer() -> None:
    trends = trends_of(look(0, 1000, 500), look(10, 1100, 200))
    assert trends.rates[-1].applied == 40.0
    assert trends.time_to_apply(440, are_new_ones_counted=True) == timedelta(seconds=11)
    assert trends.time_to_apply(450, are_new_ones_counted=False) == timedelta(seconds=15)
    early = trends_of(look(0, 1000, 500), look(2, 1020, 440))
    assert early.rates[-1].applied == 40.0
    assert early.time_to_apply(440, are_new_ones_counted=True) is None, "who has just looked cannot know"


def test_nobody_knows_the_time_to_apply_events_that_do_not_get_fewer() -> None:
    trends = trends_of(look(0, 1000, 500), look(2, 1100, 600))
    assert trends.time_to_apply(600, are_new_ones_counted=True) is None
    assert trends.time_to_apply(600, are_new_ones_counted=False) is None
    assert Trends().time_to_apply(600, are_new_ones_counted=True) is None


def test_the_chart_of_rates_has_a_gap_where_nobody_looked() -> None:
    seen = [Rates(NOW + timedelta(seconds=seconds), 5.0, 1.0) for seconds in (0, 2, 60, 62)]
    (into_kafka, _) = rates_options(seen, NOW, seconds=2)["series"]
    start = NOW.timestamp() * 1000
    assert [(at - start, rate) for at, rate in into_kafka["data"]] == [
        (0, 5.0),
        (2000, 5.0),
        (60000, None),
        (60000, 5.0),
        (62000, 5.0),
    ]


def test_a_table_stays_in_the_first_snapshot_until_the_last_one_has_a_commit() -> None:
    new = replace(well(9), table=USERS, ended=9, commit=None)
    trends = trends_of(view_of(replace(well(7), ended=7, commit=None), new))
    trends.add(view_of(replace(well(0), ended=7), new))
    assert trends.first_snapshot == {ORDERS, USERS}
    shown = view_of(replace(well(0), ended=7), new).catching_up(trends.first_snapshot)
    assert [(one.table, one.applied, one.total) for one in shown] == [(USERS, 0, 9), (ORDERS, 7, 7)]
    trends.add(view_of(replace(well(0), ended=7), replace(well(0), table=USERS, ended=9)))
    assert trends.first_snapshot == set()
