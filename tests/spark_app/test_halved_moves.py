"""A batch ends before a key change of which it holds one half, and does not wait for the other endlessly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_app.sources.event import OffsetRange, TopicExtent, ranges_from
from spark_app.table.batch_plan import MOST_EVENTS_WITHIN_A_MOVE, without_halved_moves

LIMIT = 200_000
LENGTHS = st.integers(1, 400_000)


def test_each_range_ends_before_its_first_half_and_an_empty_one_is_left_out() -> None:
    ranges = (OffsetRange(0, 10, 20), OffsetRange(1, 5, 9), OffsetRange(2, 0, 7))

    assert without_halved_moves(ranges, {0: 15, 1: 5}) == (OffsetRange(0, 10, 15), OffsetRange(2, 0, 7))


def test_a_half_at_the_end_of_very_many_events_still_waits_for_the_other_half() -> None:
    until = 10 * MOST_EVENTS_WITHIN_A_MOVE
    whole = OffsetRange(0, 0, until)
    assert without_halved_moves((whole,), {0: until - 1}) == (OffsetRange(0, 0, until - 1),)
    assert without_halved_moves((whole,), {0: until - MOST_EVENTS_WITHIN_A_MOVE - 1}) == (whole,)


@given(st.lists(LENGTHS, min_size=1, max_size=6))
def test_where_a_half_is_not_waited_for_any_longer_all_other_partitions_are_in_the_batch_whole(
    lengths: list[int],
) -> None:
    extent = TopicExtent(dict.fromkeys(range(len(lengths)), 0), dict(enumerate(lengths)))
    ranges = ranges_from({}, extent, LIMIT)
    halved = {r.partition: r.first for r in ranges}

    for given_up in without_halved_moves(ranges, halved):
        assert given_up.length > MOST_EVENTS_WITHIN_A_MOVE
        assert all(r.length == lengths[r.partition] for r in ranges if r.partition != given_up.partition)


def test_a_half_that_never_comes_is_given_up_once_enough_has_come_after_it() -> None:
    extent = TopicExtent({0: 0, 1: 0}, {0: LIMIT, 1: 3})
    ranges = ranges_from({}, extent, LIMIT)

    assert OffsetRange(0, 0, LIMIT - 3) in without_halved_moves(ranges, {0: 0})
