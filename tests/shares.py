"""Knows which tests run together in one process, and in which order the processes start.

Tests that share Spark or servers stay together: a second process would have to start its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Share:
    """What one pytest process runs.

    name   what the output calls it
    paths  folders and modules below tests/
    slow   whether it runs their tests that are marked slow, or the others
    """

    name: str
    paths: tuple[Path, ...]
    slow: bool

    def arguments(self) -> list[str]:
        """What to call pytest with."""
        return ["-m", "slow" if self.slow else "not slow", *map(str, self.paths)]


def all_shares(tests: Path = TESTS) -> Sequence[Share]:
    """Return shares that hold every test once. Fast tests come first, so that a mistake shows early."""
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
