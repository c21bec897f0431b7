"""A table is as fresh as its position in its topic, not as its last change."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from tests.console.views import NOW, ORDERS, commit
from tributary.operations.table_lag import QuietTables, TableLag

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_quiet_table_that_has_every_event_is_equal_now() -> None:
    assert TableLag(ORDERS, 0, commit()).equal_at(LATER) == LATER


def test_a_table_with_events_left_or_an_unknown_end_is_as_old_as_its_last_commit() -> None:
    for behind in (1, None):
        assert TableLag(ORDERS, behind, commit()).equal_at(LATER) == NOW


def test_a_quiet_table_is_read_again_after_a_while_however_often_somebody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    quiet, ends, read = QuietTables(seconds=30), commit().ledger.positions, 0
    for second in range(0, 100, 2):
        now = second
        if quiet.commit("t", ends) is None:
            read += 1
            quiet.keep("t", ends, commit())
    assert read == 4


def test_a_table_that_is_behind_or_has_new_events_is_read_at_each_look() -> None:
    quiet, ends = QuietTables(), {0: 10}
    quiet.keep("t", ends, commit())
    assert quiet.commit("t", ends) is None, "one event is left"
    quiet.keep("t", {0: 9}, commit())
    assert quiet.commit("t", {0: 9}) == commit()
    assert quiet.commit("t", ends) is None
    assert quiet.commit("another", {0: 9}) is None


def test_a_table_without_a_commit_is_never_equal() -> None:
    assert TableLag(ORDERS, 0).equal_at(LATER) is None
