"""The quarantine's limit: how many events may be set aside before somebody has to look at their source."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tributary.contract.errors import TributaryError
from tributary.contract.lake import TablePolicy

LATEST_EVENTS = 10_000
"""The limit is about so many of a table's latest events, or about one batch where that has more."""

FEWEST_EVENTS = 1_000
"""Of fewer events a share says little: it is taken of so many."""


class QuarantineLimitReached(TributaryError):
    """So many events cannot be read that to set them aside would hide what is wrong."""


@dataclass
class LatestEvents:
    """The latest batches of a table in this run: their events, and how many of those were set aside."""

    _batches: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, events: int, set_aside: int) -> None:
        """One more batch, and as many fewer as `LATEST_EVENTS` can do without."""
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
