"""Run the steps of a start in parallel and in order. All steps end if one fails."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Literal, Self, TypeVar

from tributary.contract.process_signals import handled
from tributary.local.process import StartCancelled

Result = TypeVar("Result")
State = Literal["starting", "ready", "running"]
Progress = Callable[[str, State, float], None]
"""Gets a step's name, its state and its duration in seconds. Several threads call it, one at a time.

The state `running` means that there was nothing to do.
"""

_STEPS_AT_ONCE = 16
_POLL_SECONDS = 0.1


class Startup:
    """Steps that each run in a thread. The end of the `with` block waits for all and raises the first error.

    After the block no step is still at work. The block ends because all steps are done, because one failed,
    or because `interrupted` was set. In the last case it raises KeyboardInterrupt.
    """

    def __init__(self, progress: Progress, interrupted: threading.Event) -> None:
        self.cancelled = threading.Event()
        self._progress = progress
        self._interrupted = interrupted
        self._reporting = threading.Lock()
        self._pool = ThreadPoolExecutor(_STEPS_AT_ONCE, thread_name_prefix="start")
        self._steps: list[Future[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        undone = set(self._steps)
        while undone and kind is None and not self._has_failed() and not self._interrupted.is_set():
            undone = wait(undone, timeout=_POLL_SECONDS, return_when=FIRST_EXCEPTION).not_done
        if undone:
            self.cancelled.set()
        self._pool.shutdown(wait=True)
        if kind is None and self._interrupted.is_set():
            # Comes before any error, because a step may fail only because the signal reached its server.
            raise KeyboardInterrupt
        if kind is None:
            self._raise_first_error()

    def step(
        self,
        name: str,
        work: Callable[[], Result],
        after: Sequence[Future[Any]] = (),
        did_something: Callable[[Result], bool] = lambda _: True,
    ) -> Future[Result]:
        """Run `work` once the steps in `after` are done. They must be steps of earlier calls.

        If `did_something` is false for the result, the step is reported as already running.
        """

        def run() -> Result:
            for earlier in after:
                earlier.result()
            if self.cancelled.is_set():
                raise StartCancelled(name)
            self._report(name, "starting", 0.0)
            began = time.monotonic()
            result = work()
            self._report(name, "ready" if did_something(result) else "running", time.monotonic() - began)
            return result

        future = self._pool.submit(run)
        self._steps.append(future)
        return future

    def _has_failed(self) -> bool:
        return any(step.done() and step.exception() is not None for step in self._steps)

    def _raise_first_error(self) -> None:
        """Raise the first failed step's error. A step that only gave up after another's failure is none."""
        for step in self._steps:
            error = step.exception()
            if error is not None and not isinstance(error, StartCancelled):
                raise error

    def _report(self, name: str, state: State, seconds: float) -> None:
        with self._reporting:
            self._progress(name, state, seconds)


@contextmanager
def noted_interrupts() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C, SIGTERM and SIGHUP set instead of interrupting.

    An exception at any point could come after a server has started and before its record is written.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread may set signal handlers, and only it is interrupted
        return
    with handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda *_: interrupted.set()):
        yield interrupted
