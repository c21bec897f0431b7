"""What all keepers of a lake share: a thread beside an ingest, and a lock for one process at a time."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tributary.local.state import StateFolder


@contextmanager
def alone(state: StateFolder, work: str) -> Iterator[bool]:
    """Yield whether no other process does this work while the context lasts."""
    with (state.path / f"{work}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def in_a_thread(work: Callable[[], None], stop: threading.Event, name: str) -> Iterator[None]:
    """Run the work in a thread as long as the context lasts. Then set `stop` and wait for the work's end."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
