"""The wait for the lake ends once every table has reached its topic's end, or with what is missing."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.operations.kafka_topics import events_behind
from tributary.operations.reconcile.barrier import LakeBehind, Patience, wait_for_lake

POSITIONS = st.dictionaries(st.integers(0, 3), st.integers(0, 100))


@given(POSITIONS, POSITIONS)
def test_a_table_is_behind_exactly_while_one_of_its_partitions_is(
    positions: dict[int, int], ends: dict[int, int]
) -> None:
    is_behind = any(positions.get(partition, 0) < end for partition, end in ends.items())
    assert (events_behind(positions, ends) > 0) == is_behind


def test_the_wait_ends_once_every_table_has_reached_its_topic_s_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tributary.operations.reconcile.barrier.POLL_SECONDS", 0)
    reached = {"a": 0, "b": 0}
    told: list[str] = []

    def read_positions(topic: str) -> Mapping[int, int]:
        reached[topic] += 1
        return {0: reached[topic]}

    wait_for_lake({"a": {0: 3}, "b": {0: 5}}, read_positions, Patience.of(60, told.append))

    assert reached["a"] >= 3
    assert reached["b"] >= 5
    assert "a is 2 events behind" in told[0]


def test_a_table_without_a_commit_is_behind_by_its_whole_topic() -> None:
    with pytest.raises(LakeBehind, match="t is 7 events behind"):
        wait_for_lake({"t": {0: 3, 1: 4}}, lambda _: {}, Patience.of(0))


def test_a_wait_for_nothing_ends_at_once() -> None:
    wait_for_lake({}, lambda _: {}, Patience.of(0))
    wait_for_lake({"t": {0: 0}}, lambda _: {}, Patience.of(0))


def test_a_wait_can_be_canceled() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(LakeBehind):
        wait_for_lake({"t": {0: 1}}, lambda _: {}, Patience.of(60, stop=stop))
