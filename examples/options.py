"""The limits of the examples' options, and how an example ends: without a traceback, as the commands do."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from typing import TypeVar

from tributary.contract.errors import TributaryError
from tributary.operations.remedy_words import remedy_words

STOPPED = 130
"""The exit status of a command that Ctrl-C has stopped."""


_Number = TypeVar("_Number", int, float)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return how argparse reads a whole number within limits."""
    return _within(int, least, most, f"a whole number from {least} to {most}")


def number(least: float, most: float) -> Callable[[str], float]:
    """Return how argparse reads a number within limits."""
    return _within(float, least, most, f"a number from {least:g} to {most:g}")


def _within(
    kind: Callable[[str], _Number], least: _Number, most: _Number, expected: str
) -> Callable[[str], _Number]:
    def read(text: str) -> _Number:
        try:
            found: _Number | None = kind(text)
        except ValueError:
            found = None
        # Text that is no number, and NaN, are not within limits either.
        if found is None or not least <= found <= most:
            raise argparse.ArgumentTypeError(f"found {text}, expected {expected}")
        return found

    return read


def run_example(example: Callable[[], None]) -> None:
    """Run an example. An error that a person can act on becomes one paragraph, and Ctrl-C a status.

    SIGTERM and SIGHUP end an example as Ctrl-C does: it stops its servers.
    """
    for one in (signal.SIGTERM, signal.SIGHUP):
        # nohup lets an example ignore SIGHUP.
        if signal.getsignal(one) == signal.SIG_DFL:
            signal.signal(one, signal.default_int_handler)
    try:
        example()
    except TributaryError as error:
        print(f"error: {error.text(remedy_words)}", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        raise SystemExit(STOPPED) from None
