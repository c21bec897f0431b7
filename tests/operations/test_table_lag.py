"""A table is as fresh as its position in its topic, not as its last change."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.console.views import NOW, ORDERS, commit
from tributary.operations.table_lag import TableLag

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_quiet_table_that_has_every_event_is_equal_now() -> None:
    assert TableLag(ORDERS, 0, commit()).equal_at(LATER) == LATER


def test_a_table_with_events_left_or_an_unknown_end_is_as_old_as_its_last_commit() -> None:
    for behind in (1, None):
        assert TableLag(ORDERS, behind, commit()).equal_at(LATER) == NOW


def test_a_table_without_a_commit_is_never_equal() -> None:
    assert TableLag(ORDERS, 0).equal_at(LATER) is None
