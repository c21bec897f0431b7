"""The newest position of each key that changed lately, to find changes that are older without a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_KEYS = 50_000
"""So many keys take about 15 MB. With more, half of them are forgotten."""


@dataclass
class RecentPositions:
    """The newest position of each key, as far as it is after `floor`: no other applied change is."""

    floor: bytes
    _newest: dict[str, bytes] = field(default_factory=dict, init=False)

    def knows(self, first: bytes) -> bool:
        """Return whether this is enough to compare changes that are not before the position `first`."""
        return first > self.floor

    def later(self, newest: Mapping[str, bytes]) -> list[str]:
        """Return the keys that have changed after these positions, among those that are known."""
        return [key for key, position in newest.items() if self._newest.get(key, position) > position]

    def add(self, newest: Mapping[str, bytes]) -> None:
        """Take note of a batch's keys with their newest positions."""
        for key, position in newest.items():
            self._newest[key] = max(position, self._newest.get(key, position))
        if len(self._newest) > MOST_KEYS:
            self.floor = max(self.floor, sorted(self._newest.values())[len(self._newest) // 2])
            self._newest = {key: at for key, at in self._newest.items() if at > self.floor}
