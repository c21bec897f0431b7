"""The quarantine's limit: how many events may be set aside before a person has to look at their source."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tributary.contract.errors import TributaryError
from tributary.contract.lake import TablePolicy

LATEST_EVENTS = 10_000
"""The limit applies to this many of a table's latest events, or to one batch if it has more."""

FEWEST_EVENTS = 1_000
"""The share is taken of at least this many events, because a share of fewer says little."""


class QuarantineLimitReached(TributaryError):
    """So many events cannot be read that setting them aside would hide the cause."""


@dataclass
class LatestEvents:
    """The latest batches of a table in this run: their events, and how many of them were set aside."""

    _batches: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, events: int, set_aside: int) -> None:
        """Add a batch, and drop the oldest batches that are not needed for `LATEST_EVENTS`."""
        self._batches.append((events, set_aside))
        while self.events - self._batches[0][0] >= LATEST_EVENTS:
            self._batches.popleft()

    @property
    def events(self) -> int:
        return sum(events for events, _ in self._batches)

    @property
    def set_aside(self) -> int:
        return sum(set_aside for _, set_aside in self._batches)

    def has_room_for(self, events: int, set_aside: int, policy: TablePolicy) -> bool:
        """Return whether the table's limit allows a further batch of which so many events are set aside."""
        latest = max(self.events + events, FEWEST_EVENTS)
        return not set_aside or self.set_aside + set_aside <= policy.may_be_quarantined(latest)
