"""What people have asked for with a button, each in a thread, with its progress and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Words

MOST_KEPT = 20
SECONDS_TO_END = 90.0


@dataclass
class Job:
    """One thing that somebody has asked for.

    subject  the table that it concerns
    told     its progress, or how it ended
    """

    title: str
    subject: str
    state: Literal["running", "done", "failed"] = "running"
    told: str = ""
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def say(self, text: str) -> None:
        self.told = text


Work = Callable[[Job, threading.Event], str]
"""Does the job and returns how it ended. It tells the job its progress, and ends soon if the event is set."""


@dataclass
class Jobs:
    """All jobs of a console, newest first. Any thread may read them."""

    words: Words
    _jobs: list[Job] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, title: str, subject: str, work: Work) -> Job:
        """Start the work, unless the same job is running already: then return that one."""
        with self._lock:
            for job in self._jobs:
                if (job.title, job.subject, job.state) == (title, subject, "running"):
                    return job
            job = Job(title, subject)
            self._jobs = [job, *self._jobs][:MOST_KEPT]
            thread = threading.Thread(
                target=self._run, args=(job, work), name=f"{title} {subject}", daemon=True
            )
            self._threads = [*(one for one in self._threads if one.is_alive()), thread]
            thread.start()
        return job

    def of(self, subjects: frozenset[str] | None = None) -> tuple[Job, ...]:
        """Return the jobs of these tables, or all."""
        return tuple(job for job in self._jobs if subjects is None or job.subject in subjects)

    def close(self) -> None:
        """Let all jobs end soon, and wait for them."""
        self._stop.set()
        for thread in self._threads:
            thread.join(SECONDS_TO_END)

    def _run(self, job: Job, work: Work) -> None:
        try:
            job.told, job.state = work(job, self._stop), "done"
        except TributaryError as error:
            job.told, job.state = error.text(self.words), "failed"
        except Exception as error:  # noqa: BLE001  Whoever pressed the button has to see it.
            job.told, job.state = f"{type(error).__name__}: {error}", "failed"
