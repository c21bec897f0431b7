"""How the lake is known to hold all that the database held at a moment: from the WAL to Kafka to the ledgers.

Everything that the source committed before an LSN is in Kafka once Debezium has confirmed that LSN to its
slot: it confirms what Kafka Connect has stored as the connector's offset, which is what Kafka has
acknowledged. And all that is in Kafka is in the lake once the ledger of each table has reached the end that
its topic then had.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psycopg

from tributary.cli.kafka_topics import Positions
from tributary.cli.table_lag import events_behind
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import CheckStatus, Ingest, RemedyOrText

POLL_SECONDS = 0.2


class LakeBehind(TributaryError):
    """The lake has not come up to the database within the time that it was given."""


@dataclass(frozen=True)
class Patience:
    """Until when to wait (a value of time.monotonic), and whom to tell what is being waited for.

    Whoever sets `stop` gives up before that.
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
        """Waits until nothing is lacking. Raises `LakeBehind` with what still is when the time is over."""
        while (missing := lacking()) is not None:
            if time.monotonic() >= self.deadline or self.stop.is_set():
                raise LakeBehind(f"Gave up waiting for {for_what}", found=missing, remedy=remedy)
            self.tell(f"waiting for {for_what}: {missing}")
            self.stop.wait(POLL_SECONDS)


def wait_for_connector(connection: psycopg.Connection, slot: str, mark: str, patience: Patience) -> None:
    """Returns when Kafka holds every change that was committed before the call.

    `mark` is a statement that writes to a table that Debezium reads, so that a source at rest confirms too.
    Raises `LakeBehind`.
    """
    remedy: RemedyOrText = ["Check that the source connector runs.", CheckStatus()]
    patience.wait("Debezium's replication slot", lambda: _slot_problem(connection, slot), remedy)
    # Once before, because a slot just made has confirmed where it starts, though its snapshot is still being
    # read; once after, because what is confirmed may fall short of the very end of the WAL.
    connection.execute(mark.encode())
    row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    assert row is not None
    connection.execute(mark.encode())
    patience.wait("Debezium", lambda: _unconfirmed(connection, slot, row[0]), remedy)


def wait_for_lake(
    ends: Mapping[str, Positions], read_positions: Callable[[str], Positions], patience: Patience
) -> None:
    """Returns when the lake has applied every topic up to its end.

    `read_positions` gives how far the table of a topic is, as its ledger says. Raises `LakeBehind`.
    """
    remedy: RemedyOrText = ["Check that the Spark app runs and is well.", Ingest()]
    left = set(ends)

    def lacking() -> str | None:
        behind = {topic: events_behind(read_positions(topic), ends[topic]) for topic in sorted(left)}
        left.intersection_update(topic for topic, events in behind.items() if events)
        return ", ".join(f"{topic} is {behind[topic]:,} events behind" for topic in sorted(left)) or None

    patience.wait("the lake", lacking, remedy)


def _slot_problem(connection: psycopg.Connection, slot: str) -> str | None:
    row = connection.execute(
        "SELECT active FROM pg_replication_slots WHERE slot_name = %s", [slot]
    ).fetchone()
    if row is None:
        return f"there is no slot {slot}"
    return None if row[0] else f"nobody reads the slot {slot}"


def _unconfirmed(connection: psycopg.Connection, slot: str, lsn: str) -> str | None:
    row = connection.execute(
        """SELECT greatest(pg_wal_lsn_diff(%s::pg_lsn, confirmed_flush_lsn), 0)::bigint
        FROM pg_replication_slots WHERE slot_name = %s""",
        [lsn, slot],
    ).fetchone()
    if row is None:
        return f"there is no slot {slot}"
    return None if row[0] == 0 else f"{row[0]:,} bytes of WAL are not confirmed yet"
