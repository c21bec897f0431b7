"""Knows how a source's connector begins anew: with a snapshot, from a replication slot of now."""

from __future__ import annotations

import time

import psycopg

from connectors.connect_rest import ConnectRest
from contract.errors import TributaryError
from local.connector_state import CONNECTOR_SECONDS
from local.databases import SourceDatabase
from local.process import POLL_SECONDS

_DROP = """
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %(slot)s AND NOT active
"""
_EXISTS = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %(slot)s"


class SlotInUse(TributaryError):
    """A replication slot cannot be dropped while somebody reads from it."""


def begin_anew(database: SourceDatabase, rest: ConnectRest) -> None:
    """Has the source's connector forget how far it had come, drops its slot, and starts it.

    Returns once it runs. Raises ConnectRefused, ConnectorFailed, DatabaseUnreachable and SlotInUse."""
    names = database.lake.source_names(database.source)
    rest.stop(names.connector)
    deadline = time.monotonic() + CONNECTOR_SECONDS
    while (status := rest.status(names.connector)).state != "STOPPED" or status.tasks:
        if time.monotonic() > deadline:
            raise TributaryError(
                "the connector does not stop", where=names.connector, found=status.state, expected="STOPPED"
            )
        time.sleep(POLL_SECONDS)
    rest.forget_offsets(names.connector)
    with database.connect() as connection:
        drop_slot(connection, names.slot)
    rest.resume(names.connector)
    rest.wait_running([names.connector], CONNECTOR_SECONDS)


def drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """The server may take a moment to notice that its reader has gone. Raises SlotInUse where it goes on."""
    deadline = time.monotonic() + CONNECTOR_SECONDS
    while True:
        connection.execute(_DROP, {"slot": slot})
        if connection.execute(_EXISTS, {"slot": slot}).fetchall() == [(0,)]:
            return
        if time.monotonic() > deadline:
            raise SlotInUse(
                "the replication slot cannot be dropped", where=slot, found="somebody reads from it"
            )
        time.sleep(POLL_SECONDS)
