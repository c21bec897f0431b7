"""The positions of recent changes show the same older changes as a look at everything."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from spark_app.merge import recent_positions
from spark_app.merge.recent_positions import RecentPositions

_BATCHES = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.binary(min_size=1, max_size=1), min_size=1), max_size=8
)


@given(
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.binary(min_size=1, max_size=1)), batches=_BATCHES
)
def test_what_is_known_of_recent_changes_finds_the_same_older_ones_as_a_look_at_all(
    before: dict[str, bytes], batches: list[dict[str, bytes]]
) -> None:
    everything = dict(before)
    recent = RecentPositions(max(before.values(), default=b""))
    with mock.patch.object(recent_positions, "MOST_KEYS", 3):
        for batch in batches:
            if recent.knows(min(batch.values())):
                older = {key for key, at in batch.items() if everything.get(key, b"") > at}
                assert set(recent.later(batch)) == older
            recent.add(batch)
            for key, at in batch.items():
                everything[key] = max(at, everything.get(key, b""))


def test_old_keys_are_forgotten_and_newer_ones_are_still_known() -> None:
    recent = RecentPositions(b"\0")
    with mock.patch.object(recent_positions, "MOST_KEYS", 4):
        for at in range(1, 9):
            recent.add({str(at): bytes([at])})

    assert not recent.knows(bytes([1]))
    assert recent.knows(bytes([8]))
    assert recent.later({"8": bytes([7])}) == ["8"]
