"""Two queues of tables share the time of the turns."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from spark_app.run.turns import Queue, SharedTurns

LIVE, CATCHING_UP = Queue.LIVE, Queue.CATCHING_UP
SECONDS = st.lists(st.floats(0.01, 5.0), min_size=20, max_size=60)


@given(SECONDS, SECONDS, st.integers(1, 4))
def test_while_both_queues_wait_each_gets_its_share_of_the_time(
    live: list[float], catching_up: list[float], at_once: int
) -> None:
    used = _simulate({LIVE: live, CATCHING_UP: catching_up}, at_once)
    of_live, of_others = used[LIVE], used[CATCHING_UP]
    longest = max(*live, *catching_up)
    # At any time, the queues differ by no more than the turns that are under way.
    assert abs(of_live / 3 - of_others) <= 2 * at_once * longest


def _simulate(waiting: dict[Queue, list[float]], at_once: int) -> dict[Queue, float]:
    """Give turns of these seconds until one of the queues is empty. Return the time of each."""
    turns, used, now = SharedTurns(at_once), dict.fromkeys(Queue, 0.0), 0.0
    left = {queue: list(seconds) for queue, seconds in waiting.items()}
    running: list[tuple[float, Queue, float]] = []
    while all(left.values()):
        on = [queue for _, queue, _ in running]
        queue = turns.next_queue(list(left), on, keeps_one_for_live=False)
        if queue is None:
            now, ended, seconds = heapq.heappop(running)
            turns.end(ended, seconds)
            continue
        seconds = left[queue].pop()
        used[queue] += seconds
        heapq.heappush(running, (now + seconds, queue, seconds))
    return used


def test_a_queue_gets_no_time_back_for_what_it_did_not_need() -> None:
    turns = SharedTurns(1)
    for _ in range(100):
        assert turns.next_queue([CATCHING_UP], [], keeps_one_for_live=False) is CATCHING_UP
        turns.end(CATCHING_UP, 1.0)
    given_to = []
    for _ in range(5):
        queue = turns.next_queue([LIVE, CATCHING_UP], [], keeps_one_for_live=False)
        assert queue is not None
        given_to.append(queue)
        turns.end(queue, 1.0)
    assert given_to[0] is LIVE
    assert CATCHING_UP in given_to


@given(
    st.integers(1, 4),
    st.lists(st.floats(10.0, 10_000.0), min_size=1, max_size=4),
    st.floats(10.0, 60.0),
    st.sampled_from([(CATCHING_UP, LIVE), (LIVE, CATCHING_UP)]),
)
def test_after_turns_however_long_a_table_of_the_same_queue_waits_for_a_few_turns_of_the_other(
    at_once: int, long: list[float], later: float, queues: tuple[Queue, Queue]
) -> None:
    of_long, other = queues
    turns = SharedTurns(at_once)
    for seconds in long[:at_once]:
        turns.end(of_long, seconds)
    given_to: list[Queue] = []
    while of_long not in given_to:
        queue = turns.next_queue(list(queues), [], keeps_one_for_live=False)
        assert queue is not None
        given_to.append(queue)
        turns.end(queue, later)
    assert given_to.count(other) <= 3 * at_once + 1


def test_tables_that_catch_up_leave_a_turn_for_live_ones() -> None:
    turns = SharedTurns(2)
    both = [LIVE, CATCHING_UP]
    assert turns.next_queue([CATCHING_UP], [CATCHING_UP], keeps_one_for_live=True) is None
    assert turns.next_queue(both, [CATCHING_UP], keeps_one_for_live=True) is LIVE
    assert turns.next_queue([CATCHING_UP], [CATCHING_UP], keeps_one_for_live=False) is CATCHING_UP
    assert turns.next_queue(both, [LIVE, CATCHING_UP], keeps_one_for_live=True) is None
    assert SharedTurns(1).next_queue([CATCHING_UP], [], keeps_one_for_live=True) is CATCHING_UP
