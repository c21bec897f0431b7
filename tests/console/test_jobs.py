"""What a button starts shows its progress and its end, and two clicks start one job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tributary.console.jobs import MOST_KEPT, Job, Jobs
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import BringUp, plain_words


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_job_shows_its_progress_and_then_its_end() -> None:
    jobs, go_on = Jobs(plain_words), threading.Event()

    def work(job: Job, _: threading.Event) -> str:
        job.say("half")
        assert go_on.wait(10)
        return "all of it"

    job = jobs.start("Rebuild", "a", work)
    until(lambda: job.told == "half")
    assert jobs.start("Rebuild", "a", work) is job
    assert jobs.start("Rebuild", "b", lambda *_: "other") is not job
    assert job.state == "running"
    go_on.set()
    until(lambda: job.state == "done")
    assert job.told == "all of it"
    assert [one.subject for one in jobs.of(frozenset({"a"}))] == ["a"]
    assert jobs.start("Rebuild", "a", lambda *_: "again") is not job


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TributaryError("Kafka is down", remedy=BringUp()), "Kafka is down. Start the pipeline."),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
    ],
)
def test_a_failed_job_shows_the_error_with_its_remedy(error: Exception, told: str) -> None:
    def work(*_: object) -> str:
        raise error

    job = Jobs(plain_words).start("Pause", "a", work)
    until(lambda: job.state == "failed")
    assert job.told == told


def test_the_end_of_the_console_ends_the_jobs() -> None:
    jobs = Jobs(plain_words)
    job = jobs.start("Rebuild", "a", lambda _, stop: str(stop.wait(10)))
    jobs.close()
    assert (job.state, job.told) == ("done", "True")


def test_only_the_latest_jobs_are_kept() -> None:
    jobs = Jobs(plain_words)
    for number in range(MOST_KEPT + 5):
        jobs.start("Pause", str(number), lambda *_: "")
    assert len(jobs.of()) == MOST_KEPT
    assert jobs.of()[0].subject == str(MOST_KEPT + 4)
