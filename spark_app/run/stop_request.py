"""The request to end a run."""

from __future__ import annotations


class StopRequest:
    """A request to end the run, which a signal handler may set.

    A `threading.Event` could deadlock: `set` takes a lock that the interrupted thread may hold.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set
