"""The check of the soak over Kinesis finds what it is there for."""

from __future__ import annotations

from tests.faults.item_history import ItemHistory, Sight


def _history(*states: int | None) -> ItemHistory:
    history = ItemHistory()
    for state in states:
        history.will_be("a", state)
    return history


def test_a_reader_may_miss_states_and_see_one_again() -> None:
    history = _history(1, 2, None, 3)
    for rows in ([], [("a", 2)], [("a", 2)], [], [], [("a", 3)]):
        assert history.see(rows).is_fine


def test_an_older_version_and_a_row_that_comes_back_are_noticed() -> None:
    history = _history(1, 2, None)
    assert history.see([("a", 2)]).is_fine
    assert history.see([("a", 1)]) == Sight(gone_back=("a",))
    assert history.see([]).is_fine
    assert history.see([("a", 2)]) == Sight(gone_back=("a",))


def test_a_row_that_vanishes_without_a_delete_is_noticed() -> None:
    history = _history(1, 2)
    assert history.see([("a", 1)]).is_fine
    assert history.see([]) == Sight(gone_back=("a",))


def test_two_rows_of_an_item_and_a_version_that_nobody_wrote_are_noticed() -> None:
    history = _history(1)
    assert history.see([("a", 1), ("a", 1)]) == Sight(doubled=("a",))
    assert history.see([("a", 7)]) == Sight(invented=("a",))
    assert history.see([("b", 1)]).invented == ("b",)
