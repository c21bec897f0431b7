"""Which table's turn is next: live tables do not wait until others have loaded or recovered.

The tables wait in two queues that share the time of the turns. In a queue, the table that waited longest is
first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum


class Queue(StrEnum):
    """Where a table waits.

    LIVE         it has a few events to commit
    CATCHING_UP  it has to recover, or it has many events to commit, or only its services are due
    """

    LIVE = "live"
    CATCHING_UP = "catching up"


_SHARES = {Queue.LIVE: 3.0, Queue.CATCHING_UP: 1.0}
"""How much of the time of the turns a queue gets while both have tables. A quarter is enough that a backlog
always shrinks."""


_MOST_COUNTED_SECONDS = 10.0
"""A longer turn counts as this long. Otherwise, after an hour's load of a large table, the live queue would
have hours of turns for itself, and a table that waits to be loaded would starve."""


@dataclass
class SharedTurns:
    """Gives the next turn to the queue that had the least time for its share (start-time fair queuing).

    at_once  how many turns there are at the same time
    """

    at_once: int
    _used: dict[Queue, float] = field(default_factory=lambda: dict.fromkeys(Queue, 0.0))

    def end(self, queue: Queue, seconds: float) -> None:
        """Count a turn of the queue."""
        self._used[queue] += min(seconds, _MOST_COUNTED_SECONDS) / _SHARES[queue]

    def next_queue(
        self, waiting: Collection[Queue], running: Collection[Queue], *, keeps_one_for_live: bool
    ) -> Queue | None:
        """Return the queue whose first table gets the next turn; None if there is no turn for any that waits.

        waiting             the queues in which a table waits
        running             the queue of each turn that is under way
        keeps_one_for_live  tables that catch up do not take the last of two turns or more, as theirs can be
                            long
        """
        allowed = set(waiting)
        if len(running) >= self.at_once:
            return None
        catching_up = sum(queue is Queue.CATCHING_UP for queue in running)
        if keeps_one_for_live and 0 < self.at_once - 1 <= catching_up:
            allowed.discard(Queue.CATCHING_UP)
        if not allowed:
            return None
        # A queue that had no table for a while gets no time back for it.
        least = min(self._used[queue] for queue in {*allowed, *running})
        for queue in Queue:
            self._used[queue] = max(self._used[queue], least)
        return min(allowed, key=lambda queue: (self._used[queue], queue is not Queue.LIVE))
