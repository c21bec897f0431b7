"""A pytest plugin: after Ctrl-C or SIGTERM no other test starts, whatever the interrupted test does.

The signal raises KeyboardInterrupt. A test may catch it, and Python drops it while it frees an object."""

from __future__ import annotations

import signal
from types import FrameType

import pytest

_noted: list[int] = []


def pytest_configure() -> None:
    # If a shell starts the tests in the background, they ignore Ctrl-C, and so would all their children.
    # SIGTERM also stops the servers that the tests have started.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    signal.default_int_handler(number, frame)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> None:
    if _noted:
        raise KeyboardInterrupt
