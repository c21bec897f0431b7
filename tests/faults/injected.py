"""The faults that the tests have injected, and the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Harm:
    """The source's rows that are missing or different in the lake, and rows that only the lake has."""

    lost: int = 0
    duplicated: int = 0


@dataclass(frozen=True)
class Injected:
    """One fault. `recovery_seconds` is the time from its end until a later row was in the lake."""

    fault: str
    recovery_seconds: float
    harm: Harm


def fault_table(faults: Iterable[Injected]) -> Iterator[str]:
    """Yield the lines of a Markdown table, with one row for each fault."""
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
