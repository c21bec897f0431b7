"""A source's replication slot: what Debezium has confirmed to it, and how to drop it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg

from connectors.engines.database_log import DatabaseLog, LogReader
from connectors.engines.engine import Awaited
from connectors.engines.postgres.names import replication_slot
from connectors.engines.postgres.preparation import heartbeat_query, slot_removal
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake

_POLL_SECONDS = 0.2
_DROP_SECONDS = 90.0
"""How long the server may take to notice that a slot's reader has gone: wal_sender_timeout is 60 seconds."""


class SlotInUse(TributaryError):
    """A replication slot cannot be dropped while somebody reads from it."""


def steps_to_kafka(connection: psycopg.Connection, lake: Lake, source: PostgresSource) -> Iterator[Awaited]:
    """Yield what to wait for until Kafka holds every change that was committed before the first step.

    Kafka holds all changes up to an LSN once Debezium has confirmed that LSN to its slot. Debezium confirms
    the offset that Kafka Connect has stored for the connector, and Kafka has acknowledged everything up to
    there.
    """
    # A write to a table that Debezium reads makes Debezium confirm, even if the source is idle.
    slot, mark = replication_slot(lake, source), heartbeat_query(lake, source).encode()
    yield Awaited("Debezium's replication slot", lambda: _slot_problem(connection, slot))
    # Wait before the write, because a new slot has confirmed its start although its snapshot is still being
    # read. Wait after the write, because the confirmed position may fall short of the very end of the WAL.
    connection.execute(mark)
    row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    assert row is not None
    connection.execute(mark)
    yield Awaited("Debezium", lambda: _unconfirmed(connection, slot, row[0]))


def read_log(connection: psycopg.Connection, slot: str, reader: LogReader) -> DatabaseLog:
    """Return how much WAL the server keeps for the slot.

    Debezium creates the slot, but reads from it only after its first snapshot.
    """
    row = connection.execute(
        """SELECT active, wal_status, safe_wal_size,
          greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint,
          greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint
        FROM pg_replication_slots WHERE slot_name = %s""",
        [slot],
    ).fetchone()
    if row is None:
        return DatabaseLog(problem=f"There is no replication slot {slot}.")
    is_active, status, left, kept, unread = row
    if status == "lost":
        return DatabaseLog(
            problem=f"The server has removed WAL that the replication slot {slot} needs (wal_status = lost)."
        )
    problem = None
    if status == "unreserved":
        problem = f"The server removes WAL that the replication slot {slot} needs at its next checkpoint."
    elif not is_active and not reader.reads_first_snapshot():
        problem = f"Nobody reads the replication slot {slot}, and the server keeps its WAL."
    return DatabaseLog(kept, unread, left, problem=problem)


def drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """Drop the replication slot if it exists. Raises SlotInUse if somebody keeps reading from it."""
    deadline = time.monotonic() + _DROP_SECONDS
    while True:
        connection.execute(slot_removal(slot).encode())
        reader = connection.execute(
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", [slot]
        ).fetchone()
        if reader is None:
            return
        if time.monotonic() > deadline:
            raise SlotInUse(
                "the replication slot cannot be dropped",
                where=slot,
                found=f"the server's process {reader[0]} reads from it for somebody",
                remedy=f"End what reads from it: SELECT pg_terminate_backend({reader[0]});",
            )
        time.sleep(_POLL_SECONDS)


def _slot_problem(connection: psycopg.Connection, slot: str) -> str | None:
    row = connection.execute(
        "SELECT active FROM pg_replication_slots WHERE slot_name = %s", [slot]
    ).fetchone()
    if row is None:
        return f"there is no slot {slot}"
    if row[0]:
        return None
    return f"nobody reads the slot {slot}: the first snapshot still runs, or the connector has stopped"


def _unconfirmed(connection: psycopg.Connection, slot: str, lsn: str) -> str | None:
    row = connection.execute(
        """SELECT greatest(pg_wal_lsn_diff(%s::pg_lsn, confirmed_flush_lsn), 0)::bigint
        FROM pg_replication_slots WHERE slot_name = %s""",
        [lsn, slot],
    ).fetchone()
    if row is None:
        return f"there is no slot {slot}"
    return None if row[0] == 0 else f"{row[0]:,} bytes of WAL are not confirmed yet"
