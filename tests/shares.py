"""The tests that run together in one process, and the order in which the processes start.

Tests that share Spark or servers stay together, because a second process would have to start its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

TESTS = Path(__file__).parent


class Kind(StrEnum):
    """Which tests of its paths a share runs, as an expression of pytest's marks.

    FAST  those that start neither servers nor Spark
    SLOW  those that start them, and together prove each promise once
    LONG  those that prove the same promises for more engines, histories and faults
    """

    FAST = "not slow"
    SLOW = "slow and not long"
    LONG = "long"


_SHARES = {
    Kind.FAST: ("stacks", "units"),
    Kind.SLOW: ("spark_app", "cli", "servers", "faults"),
    Kind.LONG: ("spark_app", "faults", "cli", "servers"),
}
"""The names of the shares, the longest first, so that the processes end at about the same time.

A name of a path is a share of this path. The other name is the share of all other paths."""
_NOT_LONG = ("examples",)
"""`make examples` runs these, because they need an environment of their own."""


@dataclass(frozen=True)
class Share:
    """The tests of one pytest process.

    name   what the output calls it
    paths  folders and modules below tests/
    """

    name: str
    paths: tuple[Path, ...]
    kind: Kind

    def arguments(self) -> list[str]:
        """Return the arguments for pytest."""
        return ["-m", self.kind, *map(str, self.paths)]


def shares_of(*kinds: Kind, tests: Path = TESTS) -> Sequence[Share]:
    """Return shares that together hold every test of these kinds once, in the order of the kinds."""
    rooms = [path for path in sorted(tests.iterdir()) if any(path.glob("test_*.py"))]
    everything = [*rooms, *sorted(tests.glob("test_*.py"))]
    return [share for kind in kinds for share in _split(everything, kind)]


def _split(everything: Sequence[Path], kind: Kind) -> list[Share]:
    """Return one share for each path that is alone, and one for all others."""
    left_out = _NOT_LONG if kind is Kind.LONG else ()
    by_name = {path.name: path for path in everything if path.name not in left_out}
    rest = tuple(path for name, path in by_name.items() if name not in _SHARES[kind])
    return [Share(name, (by_name[name],) if name in by_name else rest, kind) for name in _SHARES[kind]]
