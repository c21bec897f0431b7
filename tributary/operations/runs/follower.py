"""Keep an ingest running: start it again when it ends, and let other runs of the Spark app have a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Words
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun
from tributary.operations.runs.run_progress import RunProgress

Result = TypeVar("Result")

SECONDS_TO_FINISH = 60.0
"""How long a run may take to finish its commits before it is ended in the middle of one."""

_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_BETWEEN_CHECKS = 5.0
_DELAYS = (1.0, 5.0, 15.0, 30.0)
"""Seconds to wait before the next start, by the number of runs in a row that ended early."""

_SECONDS_OF_A_GOOD_RUN = 120.0


class FollowerStopped(TributaryError):
    """The ingest is being stopped, so nothing else can run in between."""


@dataclass
class Follower:
    """An ingest that follows Kafka until `stop`.

    start        starts a run that follows
    tell         gets what a person should know, from this object's thread
    words        how to word remedies
    on_progress  gets the progress of the run, several times a second
    mend         starts what else has died, and returns what that was
    on_end       is called if the ingest ends although nobody stopped it; `failure` then says why
    """

    start: Callable[[], IngestRun]
    tell: Callable[[str], None]
    words: Words
    on_progress: Callable[[RunProgress], None] = lambda _: None
    mend: Callable[[], str | None] = lambda: None
    on_end: Callable[[], None] = lambda: None
    delays: tuple[float, ...] = _DELAYS
    stop: threading.Event = field(default_factory=threading.Event)
    failure: TributaryError | None = None
    _run: IngestRun | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _is_turn_wanted: threading.Event = field(default_factory=threading.Event)
    _is_free: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follow in a thread as long as the context lasts. Ctrl-C at its end ends the run at once."""
        thread = threading.Thread(target=self._follow, name="follower", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.stop.set()
            try:
                thread.join()
            except BaseException:
                if (run := self._run) is not None:
                    run.kill()
                raise

    def in_between(self, work: Callable[[], Result]) -> Result:
        """Stop the ingest between two commits, do the work, and let the ingest continue.

        Raises FollowerStopped, and what the work raises.
        """
        with self._turn:
            self._is_turn_wanted.set()
            try:
                while not self._is_free.wait(_SECONDS_BETWEEN_LOOKS):
                    if self.stop.is_set() or self.failure is not None:
                        raise FollowerStopped("the ingest is being stopped", remedy="Start it again first.")
                return work()
            finally:
                self._is_turn_wanted.clear()

    def _follow(self) -> None:
        early_ends = 0
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                try:
                    self._follow_once()
                    early_ends = 0
                except TributaryError as error:
                    is_early = time.monotonic() - began < _SECONDS_OF_A_GOOD_RUN
                    early_ends = early_ends + 1 if is_early else 1
                    if early_ends > len(self.delays):
                        self.failure = error
                        return
                    delay = self.delays[early_ends - 1]
                    reason = error.text(self.words)
                    self.tell(f"The ingest has ended: {reason} It starts again in {delay:g} s.")
                    self.stop.wait(delay)
        except Exception as error:  # noqa: BLE001  A person has to see any error.
            self.failure = IngestFailed(
                "the ingest cannot continue", found=f"{type(error).__name__}: {error}"
            )
        finally:
            if not self.stop.is_set():
                self.on_end()

    def _follow_once(self) -> None:
        """Run until the end of the run, or until somebody else wants a turn. Raises the run's failure."""
        if self._is_turn_wanted.is_set():
            self._is_free.set()
            while self._is_turn_wanted.is_set() and not self.stop.wait(_SECONDS_BETWEEN_LOOKS):
                pass
            self._is_free.clear()
            return
        next_check = time.monotonic() + _SECONDS_BETWEEN_CHECKS
        run = self._run = self.start()
        try:
            while not run.is_over(_SECONDS_BETWEEN_LOOKS):
                self.on_progress(run.progress)
                if self.stop.is_set() or self._is_turn_wanted.is_set():
                    end_run(run)
                    return
                if time.monotonic() >= next_check:
                    next_check = time.monotonic() + _SECONDS_BETWEEN_CHECKS
                    self._mend_others()
        finally:
            self._run = None
        run.wait()
        if not self.stop.is_set():
            raise IngestFailed("the Spark app ended, although it was to follow")

    def _mend_others(self) -> None:
        try:
            if (mended := self.mend()) is not None:
                self.tell(f"{mended} had died, and runs again.")
        except TributaryError as error:
            self.tell(f"A server has died and cannot be started now: {error.text(self.words)}")


def end_run(run: IngestRun, patience_seconds: float = SECONDS_TO_FINISH) -> None:
    """End the run between two commits, or after the patience in the middle of one."""
    run.ask_to_stop()
    if not run.is_over(patience_seconds):
        run.kill()
    try:
        run.wait()
    except IngestFailed:
        return  # The tables' errors are in their status.
