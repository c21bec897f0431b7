"""The running processes of a lake, to kill or to pause them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from tributary.local.process import read_process
from tributary.local.state import StateFolder


def family_of(process: str, state: StateFolder) -> list[psutil.Process]:
    """Return the running server or app with this name, and all its children."""
    record = read_process(process, state.run)
    assert record is not None, f"{process} does not run"
    parent = psutil.Process(record.pid)
    return [parent, *parent.children(recursive=True)]


def kill_family(process: str, state: StateFolder) -> None:
    """Kill the process and all its children with SIGKILL. Return when they are gone."""
    family = family_of(process, state)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, timeout=10)
    assert read_process(process, state.run) is None


@contextmanager
def paused_family(process: str, state: StateFolder) -> Iterator[None]:
    """Pause the process and all its children with SIGSTOP, and resume them with SIGCONT."""
    family = family_of(process, state)
    try:
        for member in family:
            member.suspend()
        yield
    finally:
        for member in family:
            member.resume()
