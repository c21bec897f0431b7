"""The faults that the tests have injected, and what came of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Harm:
    """Rows of the source that the lake has not, or not as they are, and rows of the lake beyond those."""

    lost: int = 0
    duplicated: int = 0


@dataclass(frozen=True)
class Injected:
    """One fault. `recovery_seconds`: from its end until a row that was written after it was in the lake."""

    fault: str
    recovery_seconds: float
    harm: Harm


def fault_table(faults: Iterable[Injected]) -> Iterator[str]:
    """The lines of a table in Markdown, one row a fault."""
    by_name: defaultdict[str, list[Injected]] = defaultdict(list)
    for one in faults:
        by_name[one.fault].append(one)
    yield "| Fault | Times | Lost | Duplicated | Recovery, p50 | longest |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, found in sorted(by_name.items()):
        yield f"| {name} | {_figures(found)} |"


def _figures(found: Sequence[Injected]) -> str:
    seconds = [one.recovery_seconds for one in found]
    lost = sum(one.harm.lost for one in found)
    duplicated = sum(one.harm.duplicated for one in found)
    return f"{len(found)} | {lost} | {duplicated} | {median(seconds):.1f} s | {max(seconds):.1f} s"
