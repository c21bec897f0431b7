"""The limits of the examples' options, and how an example ends: without a traceback, as the commands do."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable

from tributary.contract.errors import TributaryError
from tributary.operations.remedy_words import remedy_words

STOPPED = 130
"""The exit status of a command that Ctrl-C has stopped."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return how argparse reads a whole number within limits."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"found {text}, expected a whole number from {least} to {most}")
        return number

    return read


def number(least: float, most: float) -> Callable[[str], float]:
    """Return how argparse reads a number within limits."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"found {text}, expected a number from {least:g} to {most:g}")
        return found

    return read


def run_example(example: Callable[[], None]) -> None:
    """Run an example. An error that a person can act on becomes one paragraph, and Ctrl-C a status.

    SIGTERM and SIGHUP end an example as Ctrl-C does: it stops its servers.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup lets an example ignore SIGHUP.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        example()
    except TributaryError as error:
        print(f"error: {error.text(remedy_words)}", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        raise SystemExit(STOPPED) from None
