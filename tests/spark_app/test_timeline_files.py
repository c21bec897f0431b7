"""The files of a timeline's oldest instants are removed in an order in which no reader finds a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_app.hudi.timeline_files import removal_of_oldest_instants

COMMITS = {"commit", "deltacommit", "replacecommit", "compaction", "logcompaction"}
COMPLETED_AS = {"compaction": "commit", "logcompaction": "deltacommit"}
STATES = ("requested", "inflight", "completed")
OTHER_FILES = ["hoodie.properties", "hoodie.properties.backup", ".temp", "history", "20260101.x.crc~"]


@dataclass(frozen=True)
class Instant:
    """`states`: how many of the `STATES` it has been in."""

    time: str
    action: str
    states: int

    @property
    def is_completed_commit(self) -> bool:
        return self.action in COMMITS and self.states == len(STATES)

    @property
    def completed(self) -> str:
        return f"{self.time}.{COMPLETED_AS.get(self.action, self.action)}"

    @property
    def earlier(self) -> list[str]:
        names = [f"{self.time}.{self.action}.{state}" for state in STATES[: min(self.states, 2)]]
        return [name.replace(".commit.inflight", ".inflight") for name in names]

    @property
    def files(self) -> list[str]:
        return [*self.earlier, self.completed] if self.states == len(STATES) else self.earlier


@st.composite
def timelines(draw: st.DrawFn) -> list[Instant]:
    common = st.sampled_from(["deltacommit", "deltacommit", "commit", "compaction", "clean", "rollback"])
    rare = st.sampled_from(["replacecommit", "logcompaction", "savepoint", "restore", "indexing"])
    actions = draw(st.lists(st.one_of(common, common, common, rare), max_size=30))
    states = st.sampled_from([3] * 40 + [1, 2])
    return [Instant(f"{20260102030405000 + n}", action, draw(states)) for n, action in enumerate(actions)]


@settings(max_examples=400)
@given(timelines(), st.integers(1, 8), st.none() | st.integers(0, 30), st.randoms())
def test_commits_go_from_the_oldest_on_and_those_stay_that_hudi_must_not_miss(
    timeline: list[Instant], remaining: int, stays_from: int | None, random: Random
) -> None:
    first_staying = None if stays_from is None else str(20260102030405000 + stays_from)
    names = [name for instant in timeline for name in instant.files] + OTHER_FILES
    random.shuffle(names)

    removal = removal_of_oldest_instants(names, remaining, first_staying)

    removed = {*removal.earlier_states, *removal.completed}
    gone = [instant for instant in timeline if removed.intersection(instant.files)]
    assert removed == {name for instant in gone for name in instant.files}
    assert all(instant.states == len(STATES) for instant in gone)

    commits = [instant for instant in timeline if instant.is_completed_commit]
    assert [instant for instant in gone if instant in commits] == _commits_that_go(
        timeline, commits, remaining, first_staying
    )
    for action in ("clean", "rollback"):
        completed = [i for i in timeline if i.action == action and i.states == len(STATES)]
        assert [instant for instant in gone if instant.action == action] == completed[:-remaining]
    assert {instant.action for instant in gone} <= COMMITS | {"clean", "rollback"}


@settings(max_examples=300)
@given(timelines(), st.integers(1, 8))
def test_while_they_go_no_commit_is_missing_after_another_nor_taken_for_a_pending_one(
    timeline: list[Instant], remaining: int
) -> None:
    names = [name for instant in timeline for name in instant.files]

    removal = removal_of_oldest_instants(names, remaining)

    completed = {instant.completed for instant in timeline if instant.states == len(STATES)}
    assert completed.isdisjoint(removal.earlier_states)
    assert completed.issuperset(removal.completed)
    commits = [instant.completed for instant in timeline if instant.is_completed_commit]
    for done in range(len(removal.completed) + 1):
        left = [name for name in commits if name not in removal.completed[:done]]
        assert left == commits[len(commits) - len(left) :]


def _commits_that_go(
    timeline: Sequence[Instant], commits: Sequence[Instant], remaining: int, stays_from: str | None
) -> list[Instant]:
    """One by one, until one must stay."""
    pending = [i.time for i in timeline if i.action in COMMITS and i.states < len(STATES)]
    savepoints = [i.time for i in timeline if i.action == "savepoint"]
    with_ledger = [commit.time for commit in commits if commit.action not in ("commit", "compaction")]
    is_merge_on_read = any(commit.completed.endswith(".deltacommit") for commit in commits)
    going: list[Instant] = []
    for number, commit in enumerate(commits):
        later = commits[number + 1].time if number + 1 < len(commits) else None
        is_last_before_pending = any(
            commit.time < time and (later is None or time < later) for time in pending
        )
        if (
            number >= len(commits) - remaining
            or any(time <= commit.time for time in [*savepoints, *pending])
            or is_last_before_pending
            or (stays_from is not None and stays_from <= commit.time)
            or (is_merge_on_read and with_ledger[-1] <= commit.time)
        ):
            break
        going.append(commit)
    return going
