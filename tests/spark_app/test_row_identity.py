"""A row is the same row whatever its key is called at the time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_app.merge.row_identity import Move, Place, tenures

KEYS = ["1", "2", "3", "4"]


def _position(number: int) -> bytes:
    return number.to_bytes(8)


@st.composite
def moves_of_rows(draw: st.DrawFn) -> list[Move]:
    """Moves one after the other, each of a key that a row has to one that none has."""
    held = set(draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=3)))
    moves = []
    for number in range(draw(st.integers(0, 6))):
        free = sorted(set(KEYS) - held)
        old, new = draw(st.sampled_from(sorted(held))), draw(st.sampled_from(free))
        moves.append(Move(Place(0, _position(10 * number)), old, new))
        held = held - {old} | {new}
    return moves


@given(moves_of_rows(), st.integers(0, 65))
def test_at_any_place_a_key_stands_for_the_row_that_a_walk_through_the_moves_finds(
    moves: list[Move], number: int
) -> None:
    place = Place(0, _position(number))
    row_of = {key: key for key in KEYS}
    for move in moves:
        if move.place <= place:
            row_of[move.new] = row_of.pop(move.old)

    for key, row in row_of.items():
        # At the very place of its departure, a key still stands for the row that leaves.
        found = [t for t in tenures(moves) if t.key == key and t.since <= place < t.until]
        assert [t.stored_key for t in found] in ([row], [] if row == key else [row])


@given(moves_of_rows())
def test_a_key_has_one_tenure_at_a_time_and_never_none_between(moves: list[Move]) -> None:
    for key in {t.key for t in tenures(moves)}:
        held = sorted((t.since, t.until) for t in tenures(moves) if t.key == key)
        assert all(until == since for (_, until), (since, _) in pairwise(held))


def test_who_takes_a_key_that_another_row_has_left_is_another_row() -> None:
    found = tenures([Move(Place(0, b"1"), old="1", new="2"), Move(Place(0, b"2"), old="3", new="1")])

    row_ids = [t.row_id for t in found if t.key == "1"]
    assert row_ids == ["1", row_ids[1], "3"]
    assert row_ids[1] not in {"1", "3"}
