"""Every report of the app can be read back, and their sums are right."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from spark_app.reports import (
    Blocked,
    CaughtUp,
    Committed,
    Failed,
    Freshness,
    ProgressWriter,
    Replayed,
    Report,
    Started,
    Stopped,
)
from tributary.operations.runs.run_progress import RunProgress, parse_report

NAMES = st.sampled_from(["shop.public.orders", 'shop.public."odd.name"'])
COUNTS = st.integers(0, 10**9)
REPORTS: st.SearchStrategy[Report] = st.one_of(
    st.builds(Started, st.lists(NAMES, max_size=2).map(tuple)),
    st.builds(
        Committed,
        table=NAMES,
        instant=st.just("20260101000000000"),
        at=st.text(max_size=5),
        events=COUNTS,
        rows=COUNTS,
        deletes=COUNTS,
        quarantined=COUNTS,
        positions=st.dictionaries(st.integers(0, 9), COUNTS, max_size=3),
        freshness_ms=st.none() | st.builds(Freshness, COUNTS, COUNTS, COUNTS),
        seconds=st.floats(0, 100),
    ),
    st.builds(CaughtUp, NAMES),
    st.builds(Failed, NAMES, st.text(max_size=5), st.integers(1, 9), st.floats(0, 30)),
    st.builds(Blocked, NAMES, st.text(max_size=5)),
    st.builds(Replayed, NAMES, COUNTS, COUNTS),
    st.builds(Stopped, st.dictionaries(NAMES, st.sampled_from(["ok", "an error"]))),
)


@given(REPORTS)
def test_every_report_that_the_app_writes_is_read_back(report: Report) -> None:
    out = io.StringIO()
    ProgressWriter(out).write(report)
    assert parse_report(out.getvalue()) == report


def test_a_line_without_a_report_gives_none() -> None:
    for line in ("", "{", "[]", "{}", '"commit"', '{"event": "of another kind"}'):
        assert parse_report(line) is None


def _commit(
    events: int,
    p50: int | None,
    p95: int = 0,
    quarantined: int = 0,
    until: int = 0,
    *,
    table: str = "t",
    minute: int = 0,
) -> Committed:
    freshness = None if p50 is None else Freshness(p50, p95, p95)
    at = f"2026-01-01T00:{minute:02}:00.000+00:00"
    return Committed(table, "i", at, events, events, 1, quarantined, {0: until}, freshness, 1.0)


def _after(*reports: Report) -> RunProgress:
    progress = RunProgress()
    for report in reports:
        progress = progress.after(report)
    return progress


def test_counts_of_commits_add_up_and_the_last_position_counts() -> None:
    table = _after(_commit(3, None, until=3), _commit(4, None, quarantined=2, until=9)).tables["t"]
    assert (table.commits, table.events, table.rows, table.deletes, table.quarantined) == (2, 7, 7, 2, 2)
    assert table.positions == {0: 9}
    assert table.p50_ms is None


def test_freshness_is_weighted_by_events() -> None:
    table = _after(_commit(90, 100, 200), _commit(10, 5000, 9000)).tables["t"]
    assert (table.p50_ms, table.p95_ms) == (100, 9000)
    table = _after(_commit(96, 100, 200), _commit(4, 5000, 9000)).tables["t"]
    assert (table.p50_ms, table.p95_ms) == (100, 200)


def test_the_freshness_is_that_of_the_last_minutes() -> None:
    progress = _after(_commit(1000, 60_000, 90_000), _commit(10, 100, 200, minute=5))
    assert (progress.p50_ms, progress.p95_ms) == (60_000, 90_000)
    progress = progress.after(_commit(10, 100, 200, minute=6))
    assert (progress.tables["t"].p50_ms, progress.p95_ms) == (100, 200)
    other = progress.after(_commit(10, 700, 900, table="u", minute=20))
    assert (other.tables["t"].p50_ms, other.p50_ms) == (100, 700)


def test_a_run_is_caught_up_when_all_its_tables_are() -> None:
    progress = _after(Started(("a", "b")), CaughtUp("a"))
    assert not progress.is_caught_up
    progress = progress.after(CaughtUp("b"))
    assert progress.is_caught_up
    assert not progress.after(Blocked("b", "why")).is_caught_up
    assert not RunProgress().is_caught_up


def test_a_table_that_recovers_no_longer_counts_as_failed() -> None:
    progress = _after(Started(("t",)), Failed("t", "why", 1, 1.0))
    assert progress.failures == {"t": "why"}
    assert progress.after(_commit(1, None)).failures == {}


def test_the_end_of_the_run_gives_each_table_s_final_state() -> None:
    progress = _after(Started(("t", "u")), _commit(5, None), Stopped({"t": "ok", "u": "it broke"}))
    assert progress.failures == {"u": "it broke"}
    assert progress.tables["t"].events == 5


def test_the_freshness_since_a_moment_leaves_earlier_commits_out() -> None:
    progress = _after(
        _commit(900, 90_000, minute=1), _commit(10, 200, minute=3), _commit(5, 300, table="u", minute=2)
    )
    assert progress.p50_ms == 90_000
    since = progress.since(datetime(2026, 1, 1, 0, 2, tzinfo=UTC))
    assert since.p50_ms == 200
    assert since.tables["t"].events == progress.tables["t"].events == 910
    assert progress.since(datetime(2026, 1, 1, 0, 4, tzinfo=UTC)).p50_ms is None
