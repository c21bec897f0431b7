"""An ingest is kept running, ends with the reason if it cannot be, and lets other runs have a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from tributary.contract.remedies import plain_words
from tributary.operations.runs.follower import Follower, FollowerStopped
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun
from tributary.operations.runs.run_progress import RunProgress

SECONDS = 10.0


@dataclass
class FakeRun:
    """A run that ends when it is asked to, or dies."""

    progress: RunProgress = field(default_factory=RunProgress)
    ended: threading.Event = field(default_factory=threading.Event)
    death: str | None = None

    def is_over(self, wait_seconds: float = 0.0) -> bool:
        return self.ended.wait(min(wait_seconds, 0.01))

    def ask_to_stop(self) -> None:
        self.ended.set()

    def kill(self) -> None:
        self.ended.set()

    def wait(self) -> None:
        if self.death is not None:
            raise IngestFailed("The Spark app ended", found=self.death)

    def die(self, reason: str) -> None:
        self.death = reason
        self.ended.set()


@dataclass
class Runs:
    """All runs that a follower has started, and what it has told."""

    runs: list[FakeRun] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    prepare: Callable[[FakeRun], None] = lambda _: None

    def start(self) -> IngestRun:
        run = FakeRun()
        self.prepare(run)
        self.runs.append(run)
        return cast(IngestRun, run)

    def follower(self, **options: object) -> Follower:
        return Follower(self.start, self.told.append, plain_words, delays=(0.0, 0.0), **options)  # type: ignore[arg-type]

    def wait_for(self, number: int) -> FakeRun:
        until(lambda: len(self.runs) >= number)
        return self.runs[number - 1]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_run_that_dies_is_started_again_and_the_reason_is_told() -> None:
    runs = Runs()
    with runs.follower().running():
        runs.wait_for(1).die("killed")
        assert runs.wait_for(2).death is None
    assert ["killed" in told and "starts again" in told for told in runs.told] == [True]
    assert all(run.ended.is_set() for run in runs.runs)


def test_a_run_that_dies_over_and_over_ends_the_follower_with_the_reason() -> None:
    runs, ended = Runs(prepare=lambda run: run.die("no memory")), threading.Event()
    follower = runs.follower(on_end=ended.set)
    with follower.running():
        assert ended.wait(SECONDS)
    assert "no memory" in str(follower.failure)
    assert len(runs.runs) == 3


def test_an_error_that_nobody_expects_ends_the_follower_with_the_reason() -> None:
    def refuse(_: FakeRun) -> None:
        raise ZeroDivisionError("oh")

    runs, ended = Runs(prepare=refuse), threading.Event()
    follower = runs.follower(on_end=ended.set)
    with follower.running():
        assert ended.wait(SECONDS)
    assert "ZeroDivisionError: oh" in str(follower.failure)


def test_another_run_has_a_turn_while_the_ingest_does_not_run_and_then_it_goes_on() -> None:
    runs = Runs()
    follower = runs.follower()
    with follower.running():
        first = runs.wait_for(1)
        assert follower.in_between(lambda: [run.ended.is_set() for run in runs.runs]) == [True]
        assert first.ended.is_set()
        assert not runs.wait_for(2).ended.is_set()
        with pytest.raises(ValueError, match="no"):
            follower.in_between(lambda: int("no"))
        assert not runs.wait_for(3).ended.is_set()
    assert runs.told == []


def test_nothing_has_a_turn_once_the_ingest_is_being_stopped() -> None:
    runs = Runs()
    follower = runs.follower()
    with follower.running():
        runs.wait_for(1)
    with pytest.raises(FollowerStopped):
        follower.in_between(lambda: None)


def test_a_server_that_was_started_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tributary.operations.runs.follower._SECONDS_BETWEEN_CHECKS", 0.0)
    died = ["kafka"]
    runs = Runs()
    with runs.follower(mend=lambda: died.pop() if died else None).running():
        until(lambda: bool(runs.told))
    assert runs.told == ["kafka had died, and runs again."]
