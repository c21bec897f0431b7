"""The tests that run together in one process, and the order in which the processes start.

Tests that share Spark or servers mostly stay together, because each process has to start its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


_SHARES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    Kind.FAST: {"stacks": ("stacks",), "units": ()},
    Kind.SLOW: {
        "spark_app": ("spark_app/test_*.py",),
        "cli": ("cli",),
        "servers": (),
        # Spark's other tests, so that its processes end earlier: items of DynamoDB, and derived tables.
        "items": ("spark_app/*/",),
        "faults": ("faults",),
    },
    Kind.LONG: {"spark_app": ("spark_app",), "faults": ("faults",), "cli": ("cli",), "servers": ()},
}
"""The shares by name with the patterns of their paths, the longest first, so that the processes end at about
the same time. The share without a pattern has all rooms that no pattern begins with."""
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
    return [share for kind in kinds for share in _split(tests, everything, kind)]


def _split(tests: Path, everything: Sequence[Path], kind: Kind) -> list[Share]:
    """Return a share for each line of `_SHARES`."""
    left_out = _NOT_LONG if kind is Kind.LONG else ()
    shares = _SHARES[kind]
    named = {pattern.split("/")[0] for patterns in shares.values() for pattern in patterns}
    rest = tuple(path for path in everything if path.name not in {*named, *left_out})
    return [
        Share(name, tuple(_found(tests, patterns)) if patterns else rest, kind)
        for name, patterns in shares.items()
    ]


def _found(tests: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from (path for path in sorted(tests.glob(pattern)) if path.is_file() or _has_tests(path))


def _has_tests(folder: Path) -> bool:
    return any(folder.rglob("test_*.py"))
