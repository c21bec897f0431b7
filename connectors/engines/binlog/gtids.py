"""Sets of MySQL's GTIDs, the numbers of transactions that are the same on all servers of a replication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Interval = tuple[int, int]


@dataclass(frozen=True)
class GtidSet:
    """Transactions: by the series that they belong to, the intervals of their numbers, with both ends.

    A series is a server's UUID, perhaps with a tag."""

    series: Mapping[str, tuple[Interval, ...]]

    def __bool__(self) -> bool:
        return any(self.series.values())

    def __str__(self) -> str:
        return ", ".join(
            ":".join((series, *(f"{first}-{last}" if last > first else str(first) for first, last in found)))
            for series, found in sorted(self.series.items())
        )

    def without(self, other: GtidSet) -> GtidSet:
        """Return the transactions that the other set has not."""
        left = {
            series: tuple(
                piece for one in found for piece in _without(one, sorted(other.series.get(series, ())))
            )
            for series, found in self.series.items()
        }
        return GtidSet({series: found for series, found in left.items() if found})


def read_gtids(text: str | None) -> GtidSet:
    """Return the set that an offset of Debezium, or a server, has as `UUID:1-5:7,…`."""
    found: dict[str, list[Interval]] = {}
    for part in filter(None, "".join((text or "").split()).split(",")):
        uuid, *rest = part.lower().split(":")
        series = uuid
        for each in rest:
            if not each[:1].isdigit():
                series = f"{uuid}:{each}"
                continue
            first, _, last = each.partition("-")
            found.setdefault(series, []).append((int(first), int(last or first)))
    return GtidSet({series: tuple(sorted(intervals)) for series, intervals in found.items()})


def _without(interval: Interval, others: list[Interval]) -> list[Interval]:
    left, (first, last) = list[Interval](), interval
    for start, end in others:
        if end < first or start > last:
            continue
        if start > first:
            left.append((first, start - 1))
        first = end + 1
    if first <= last:
        left.append((first, last))
    return left
