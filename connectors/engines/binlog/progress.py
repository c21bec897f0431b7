"""How far Debezium has read the binary log, and how far the log goes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from connectors.engines.binlog.catalog import read_log_status
from connectors.engines.binlog.gtids import GtidSet, read_gtids
from connectors.engines.binlog.preparation import heartbeat_statement
from connectors.engines.binlog.session import Session, execute, rows_of
from connectors.engines.database_log import DatabaseLog
from connectors.engines.engine import Awaited, ReadOffset
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake

_SECONDS_BETWEEN_WRITES = 1.0


@dataclass(frozen=True, order=True)
class LogPosition:
    """A place in the binary log: the number of a file, and the byte in it."""

    file: int
    byte: int

    def __str__(self) -> str:
        return f"file {self.file}, byte {self.byte:,}"


@dataclass(frozen=True)
class ServerGtids:
    """The transactions of a server that has GTIDs.

    executed  are in its database
    purged    of these, are no longer in its log
    """

    executed: GtidSet
    purged: GtidSet


def position_in(file: str, byte: int) -> LogPosition:
    """Return a position of which the server tells the file's name, such as `binlog.000012`."""
    return LogPosition(int(file.rpartition(".")[2]), byte)


def steps_to_kafka(
    session: Session,
    lake: Lake,
    source: BinlogSource,
    read_offset: ReadOffset,
) -> Iterator[Awaited]:
    """Yield what to wait for until Kafka holds every change that was committed before the first step.

    Kafka holds all changes before the offset that Kafka Connect has stored for the connector. Debezium sends
    an offset with an event, or with a heartbeat. But it only beats when the log gets longer, or when the
    server tells that it does not, after 48 seconds. So a row is written again and again.
    """
    yield Awaited("Debezium's first snapshot", lambda: _snapshot_problem(read_offset()))
    status = read_log_status(session)
    end = position_in(str(status["File"]), int(status["Position"]))
    gtids = _read_gtids(session)
    written = -math.inf

    def lacking() -> str | None:
        nonlocal written
        unread = _unread(read_offset(), end, gtids)
        if unread is not None and time.monotonic() >= written + _SECONDS_BETWEEN_WRITES:
            execute(session, heartbeat_statement(lake, source))
            written = time.monotonic()
        return unread

    yield Awaited("Debezium", lacking)


def read_log(session: Session, offset: Mapping[str, Any] | None) -> DatabaseLog:
    """Return the size of the server's log, and how much of it follows the connector's offset."""
    files = {
        position_in(str(row["Log_name"]), 0).file: int(row["File_size"])
        for row in rows_of(session, "SHOW BINARY LOGS")
    }
    return log_after_gtids(log_after(offset, files), offset, _read_gtids(session))


def log_after_gtids(
    log: DatabaseLog, offset: Mapping[str, Any] | None, server: ServerGtids | None
) -> DatabaseLog:
    """Return the log with the problem that the GTIDs show. Names of files tell nothing after a failover."""
    if server is None or offset is None or not offset.get("gtids"):
        return log
    read = read_gtids(str(offset["gtids"]))
    if lost := read.without(server.executed):
        return replace(
            log,
            unread=None,
            problem="The server lacks transactions that the connector has read: "
            f"{lost}. It took over before it had them, or it holds another database.",
        )
    unread = server.executed.without(read)
    if unread.without(server.purged) != unread:
        return replace(
            log,
            unread=None,
            problem=f"The server has removed transactions that the connector has not read, of {unread}.",
        )
    return log if log.problem is None else replace(log, unread=None, problem=None)


def log_after(offset: Mapping[str, Any] | None, files: Mapping[int, int]) -> DatabaseLog:
    """Return what the files of the log, by number with their sizes in bytes, mean for the connector."""
    kept = sum(files.values())
    if offset is None or "file" not in offset:
        return DatabaseLog(kept)
    read = position_in(str(offset["file"]), int(offset["pos"]))
    if files and read.file < min(files):
        oldest = min(files)
        return DatabaseLog(
            kept,
            problem=f"The connector has read up to {read}, and the server's oldest file is number {oldest}.",
        )
    # The log can have got its next file between the two readings.
    if files and read.file > max(files) + 1:
        return DatabaseLog(
            kept,
            problem=f"The connector has read up to {read}, and the server's newest file is number "
            f"{max(files)}: its log was reset, or it is another server.",
        )
    unread = sum(
        size - (read.byte if file == read.file else 0) for file, size in files.items() if file >= read.file
    )
    return DatabaseLog(kept, max(0, unread))


def _read_gtids(session: Session) -> ServerGtids | None:
    """Return None if the server has no GTIDs of MySQL, or also transactions without one.

    MariaDB tells the last GTID of its log only, and that need not be the highest."""
    found = {
        str(row["Variable_name"]).lower(): str(row["Value"])
        for row in rows_of(
            session,
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_mode', 'gtid_executed', 'gtid_purged')",
        )
    }
    if found.get("gtid_mode") != "ON":
        return None
    return ServerGtids(read_gtids(found["gtid_executed"]), read_gtids(found["gtid_purged"]))


def _snapshot_problem(offset: Mapping[str, Any] | None) -> str | None:
    if offset is None:
        return "Kafka Connect has stored no offset of the connector: it has sent nothing yet"
    return "the first snapshot still runs" if _is_in_snapshot(offset) else None


def _is_in_snapshot(offset: Mapping[str, Any]) -> bool:
    return str(offset.get("snapshot", "false")).lower() not in ("false", "none")


def _unread(offset: Mapping[str, Any] | None, end: LogPosition, server: ServerGtids | None) -> str | None:
    if offset is None or _is_in_snapshot(offset):
        return _snapshot_problem(offset)
    if server is not None and offset.get("gtids"):
        # The log has no purged ones. An administrator may have added some that it never had.
        unread = server.executed.without(server.purged).without(read_gtids(str(offset["gtids"])))
        return f"Debezium has not read the transactions {unread}" if unread else None
    read = position_in(str(offset["file"]), int(offset["pos"]))
    return None if read >= end else f"Debezium has read up to {read} of the log, which goes to {end}"
