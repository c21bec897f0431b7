"""How often a run looks for work, and how much of it a table takes at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """How often to poll and how many events to take at once.

    poll_seconds       how often to look for new events of live tables, and of those with events to commit
    idle_poll_seconds  how often to look for new events of all tables. A look costs CPU time for each table.
    live_seconds       how long a table is live after its last new event
    parallel           how many tables work at the same time; `run.turns` says which. Few are better than
                       many: with all tables at once, each would be as slow as the whole round.
    events_per_commit  the most events in a commit. Larger commits are faster per event.
    events_per_turn    the most events in a commit while another table has no more than this to commit
    events_per_load    the most events in a table's first commit, which is faster per event than later ones
    """

    poll_seconds: float = 0.1
    idle_poll_seconds: float = 1.0
    live_seconds: float = 60.0
    discovery_seconds: float = 5.0
    metrics_seconds: float = 60.0
    seconds_between_services: float = 30.0
    events_per_load: int = 5_000_000
    events_per_commit: int = 1_000_000
    events_per_turn: int = 50_000
    parallel: int = 2
    attempts: int = 3
    first_retry_seconds: float = 1.0
    longest_retry_seconds: float = 30.0
