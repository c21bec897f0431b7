"""How far Debezium has read the change tables, and how far they go."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from connectors.engines.database_log import DatabaseLog
from connectors.engines.engine import Awaited, ReadOffset
from connectors.engines.sqlserver.preparation import HEARTBEAT, heartbeat_statement
from connectors.engines.sqlserver.session import Session, execute, first_row
from connectors.engines.sqlserver.sql import identifier, literal
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake

_SECONDS_BETWEEN_WRITES = 1.0
_LSN_BYTES = 10


def lsn_of(text: object) -> bytes | None:
    """Return the ten bytes of an LSN such as `00000027:00000ac0:0002`, or None if the text is none."""
    try:
        found = bytes.fromhex(str(text).replace(":", ""))
    except ValueError:  # Debezium writes NULL if it knows none.
        return None
    return found if len(found) == _LSN_BYTES else None


def shown(lsn: bytes) -> str:
    """Return the LSN as Debezium writes it."""
    digits = lsn.hex()
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"


def steps_to_kafka(
    session: Session, lake: Lake, source: SqlServerSource, read_offset: ReadOffset
) -> Iterator[Awaited]:
    """Yield what to wait for until Kafka holds every change that was committed before the first step.

    Kafka holds all changes before the offset that Kafka Connect has stored for the connector. A change is in
    the change tables only some seconds after its commit: the capture job reads the log in the order of the
    commits. So a row is written to a captured table. Once the job has recorded it, all earlier changes are
    recorded too, and the highest LSN in the change tables is one to wait for.
    """
    yield Awaited("Debezium's first snapshot", lambda: snapshot_problem(read_offset()))
    execute(session, heartbeat_statement(lake, source))
    written_row = first_row(session, _WRITTEN, (lake.name, source.name))
    assert written_row is not None, "the statement before has written it"
    end: list[bytes] = []

    def unrecorded() -> str | None:
        recorded = _last_recorded(session, lake, source)
        if recorded is None or recorded["beaten_at"] < written_row["beaten_at"]:
            return "the capture job has not recorded the last change yet: does SQL Server Agent run?"
        end[:] = [bytes(recorded["lsn"])]
        return None

    yield Awaited("SQL Server's capture job", unrecorded)
    written = -math.inf

    def lacking() -> str | None:
        nonlocal written
        unread = unread_until(read_offset(), end[0])
        if unread is not None and time.monotonic() >= written + _SECONDS_BETWEEN_WRITES:
            # Debezium sends a heartbeat, and with it its offset, only after a change.
            execute(session, heartbeat_statement(lake, source))
            written = time.monotonic()
        return unread

    yield Awaited("Debezium", lacking)


def snapshot_problem(offset: Mapping[str, Any] | None) -> str | None:
    """Return why the first snapshot is not over yet, or None if it is."""
    if offset is None:
        return "Kafka Connect has stored no offset of the connector: it has sent nothing yet"
    is_in_snapshot = str(offset.get("snapshot", "false")).lower() not in ("false", "none")
    return "the first snapshot still runs" if is_in_snapshot and not _is_completed(offset) else None


def unread_until(offset: Mapping[str, Any] | None, end: bytes) -> str | None:
    """Return what Debezium has still to read up to the commit of this LSN, or None if it has read it."""
    problem = snapshot_problem(offset)
    if problem is not None or offset is None:
        return problem
    read = lsn_of(offset.get("commit_lsn"))
    if read is not None and (read > end or (read == end and _is_whole(offset))):
        return None
    return f"Debezium has read up to {shown(read) if read else 'no LSN'}, and the changes go to {shown(end)}"


def read_log(session: Session, offset: Mapping[str, Any] | None) -> DatabaseLog:
    """Return how long before the last captured change the connector's last one was committed.

    The server keeps captured changes in tables, for a time that it does not measure in bytes.
    """
    read = None if offset is None else lsn_of(offset.get("commit_lsn"))
    if read is None:
        return DatabaseLog()
    found = first_row(session, _BEHIND, (f"0x{read.hex()}",))
    assert found is not None, "a query of aggregates has one row"
    if found["is_gone"]:
        return DatabaseLog(
            problem=f"The connector has read up to {shown(read)}. SQL Server has captured later changes, but"
            " no longer keeps all that followed: take a new snapshot if the connector cannot resume."
        )
    behind = found["behind_ms"]
    return DatabaseLog(behind=None if behind is None else max(0.0, float(behind) / 1000))


def _is_whole(offset: Mapping[str, Any]) -> bool:
    """Tell whether the offset's transaction was sent as a whole. The offset then names no change."""
    return lsn_of(offset.get("change_lsn")) is None


def _is_completed(offset: Mapping[str, Any]) -> bool:
    return str(offset.get("snapshot_completed", "false")).lower() == "true"


def _last_recorded(session: Session, lake: Lake, source: SqlServerSource) -> Mapping[str, Any] | None:
    """Return the last write to the heartbeat table that its change table has, with its commit's LSN."""
    found = first_row(session, _CHANGE_TABLE)
    if found is None:
        return None
    changes = identifier("cdc", str(found["name"]))
    return first_row(session, _RECORDED.format(changes=changes), (lake.name, source.name))


_BEHIND = """
SELECT
  CASE WHEN kept.newest <= connector.lsn THEN 0
    ELSE DATEDIFF_BIG(millisecond, sys.fn_cdc_map_lsn_to_time(connector.lsn),
      sys.fn_cdc_map_lsn_to_time(kept.newest)) END AS behind_ms,
  CASE WHEN kept.newest > connector.lsn AND kept.oldest > connector.lsn THEN 1 ELSE 0 END AS is_gone
FROM (SELECT CONVERT(binary(10), %s, 1) AS lsn) AS connector
CROSS JOIN (
  SELECT MIN(start_lsn) AS oldest, MAX(CASE WHEN tran_id <> 0x00 THEN start_lsn END) AS newest
  FROM cdc.lsn_time_mapping
) AS kept
"""
"""Debezium ends at the last change as well (getMaxTransactionLsn). The entries with the transaction 0 are the
capture job's own: it writes one every five minutes, even if nothing changes."""

_TIME = "CONVERT(char(23), beaten_at, 121) AS beaten_at"
"""As text, which sorts, and which the driver does not convert."""

_WRITTEN = f"SELECT {_TIME} FROM {HEARTBEAT} WHERE lake = %s AND source = %s"

_CHANGE_TABLE = f"""
SELECT TOP (1) OBJECT_NAME(ct.object_id) AS name FROM cdc.change_tables AS ct
WHERE ct.source_object_id = OBJECT_ID({literal(HEARTBEAT)}) ORDER BY ct.create_date DESC, ct.object_id DESC
"""

_RECORDED = f"""
SELECT TOP (1) [__$start_lsn] AS lsn, {_TIME} FROM {{changes}}
WHERE lake = %s AND source = %s AND [__$operation] IN (2, 4)
ORDER BY [__$start_lsn] DESC, [__$command_id] DESC, [__$seqval] DESC
"""
