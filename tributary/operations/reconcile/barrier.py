"""Wait until the lake holds all that the database held at a moment: first Kafka has it, then the ledgers.

The source's engine knows when Kafka holds everything that was committed before a moment. The lake holds all
of it once each table's ledger has reached the end that the table's topic had at that moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from connectors.engines.engine import Awaited
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import CheckStatus, Ingest, RemedyOrText
from tributary.operations.kafka_topics import Positions, events_behind

POLL_SECONDS = 0.2


class LakeBehind(TributaryError):
    """The lake did not catch up with the database in time."""


@dataclass(frozen=True)
class Patience:
    """The limit of a wait, and a function that reports the wait.

    deadline  a value of time.monotonic
    stop      ends the wait earlier
    """

    deadline: float
    tell: Callable[[str], None]
    stop: threading.Event

    @classmethod
    def of(
        cls,
        seconds: float,
        tell: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> Patience:
        return cls(time.monotonic() + seconds, tell, stop or threading.Event())

    def wait(self, for_what: str, lacking: Callable[[], str | None], remedy: RemedyOrText) -> None:
        """Wait until nothing is missing. After the deadline, raise `LakeBehind` with what is missing."""
        while (missing := lacking()) is not None:
            if time.monotonic() >= self.deadline or self.stop.is_set():
                raise LakeBehind(f"Gave up waiting for {for_what}", found=missing, remedy=remedy)
            self.tell(f"waiting for {for_what}: {missing}")
            self.stop.wait(POLL_SECONDS)


def wait_for_connector(steps: Iterable[Awaited], patience: Patience) -> None:
    """Take the engine's steps, one after the other, until Kafka holds what they wait for.

    Raises `LakeBehind`.
    """
    for step in steps:
        patience.wait(step.what, step.lacking, ["Check that the source connector runs.", CheckStatus()])


def wait_for_lake(
    ends: Mapping[str, Positions], read_positions: Callable[[str], Positions], patience: Patience
) -> None:
    """Return when the lake has applied every topic up to its end.

    `read_positions` reads a topic's positions from the ledger of its table. Raises `LakeBehind`.
    """
    remedy: RemedyOrText = ["Check that the Spark app runs without errors.", Ingest()]
    left = set(ends)

    def lacking() -> str | None:
        behind = {topic: events_behind(read_positions(topic), ends[topic]) for topic in sorted(left)}
        left.intersection_update(topic for topic, events in behind.items() if events)
        return ", ".join(f"{topic} is {behind[topic]:,} events behind" for topic in sorted(left)) or None

    patience.wait("the lake", lacking, remedy)
