"""The tests that run together in one process, and the order in which the processes start.

Tests that share Spark or servers stay together, because a second process would have to start its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Share:
    """The tests of one pytest process.

    name   what the output calls it
    paths  folders and modules below tests/
    slow   run the tests that are marked slow, or else the others
    """

    name: str
    paths: tuple[Path, ...]
    slow: bool

    def arguments(self) -> list[str]:
        """Return the arguments for pytest."""
        kind = "slow and not long" if self.slow else "not slow"
        return ["-m", kind, *map(str, self.paths)]


def all_shares(tests: Path = TESTS) -> Sequence[Share]:
    """Return shares that together hold every test once, except the long ones.

    Fast tests come first, to show mistakes early."""
    rooms = [path for path in sorted(tests.iterdir()) if any(path.glob("test_*.py"))]
    everything = [*rooms, *sorted(tests.glob("test_*.py"))]
    return [
        *_split(everything, slow=False, alone=("stacks",), others="units"),
        *_split(everything, slow=True, alone=("spark_app", "faults", "cli"), others="servers"),
    ]


def _split(everything: Sequence[Path], *, slow: bool, alone: Sequence[str], others: str) -> list[Share]:
    """Return one share for each path whose name is in `alone`, in that order, and one for all others."""
    by_name = {path.name: path for path in everything}
    rest = tuple(path for path in everything if path.name not in alone)
    return [*(Share(name, (by_name[name],), slow) for name in alone), Share(others, rest, slow)]
