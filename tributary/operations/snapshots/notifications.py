"""What a connector tells about its incremental snapshots (IncrementalSnapshotNotificationService)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tributary.contract.table_name import TableName

_AGGREGATE = "Incremental Snapshot"
_HAS_READ = ("SUCCEEDED", "EMPTY")


@dataclass(frozen=True)
class Notification:
    """A message of a connector. `values` are the additional data, as Debezium names them."""

    type: str
    values: Mapping[str, str]

    @staticmethod
    def of(payload: Any) -> Notification | None:
        """Return the message about an incremental snapshot; None if the payload is about something else."""
        if not isinstance(payload, dict) or payload.get("aggregate_type") != _AGGREGATE:
            return None
        return Notification(payload["type"], payload.get("additional_data") or {})


@dataclass(frozen=True)
class Progress:
    """How far the connector is with one table.

    rows, total  how many of its rows it has read, at least
    is_read      the table was read to its end
    problem      why it could not be read
    """

    rows: int = 0
    total: int = 0
    is_read: bool = False
    problem: str | None = None


def progress_of(table: TableName, notifications: Iterable[Notification]) -> Progress:
    """Return a table's progress from what the connector has told since it was asked, in order.

    After a crash, the connector reads again from the last place that Kafka Connect has stored. It can tell
    that a table has ended, and then that it is reading the table's last rows."""
    name, progress = f"{table.schema}.{table.table}", Progress()
    for each in notifications:
        values = each.values
        if each.type == "IN_PROGRESS" and values.get("current_collection_in_progress") == name:
            total = _number(values, "total_rows")
            chunks = max(_number(values, "total_chunks"), 1)
            done = total * max(_number(values, "chunk_index") - 1, 0) // chunks
            progress = Progress(min(done, total), total)
        elif each.type == "TABLE_SCAN_COMPLETED" and values.get("scanned_collection") == name:
            total, status = _number(values, "total_rows"), values.get("status", "")
            is_read = status in _HAS_READ
            progress = Progress(total, total, is_read, None if is_read else _words(status))
    return progress


def is_reading(notifications: Sequence[Notification]) -> bool:
    """Return whether the connector is reading tables, by the last thing that it has told."""
    return bool(notifications) and notifications[-1].type not in ("COMPLETED", "ABORTED")


def _number(values: Mapping[str, str], name: str) -> int:
    try:
        return int(values.get(name, "0"))
    except ValueError:
        return 0


def _words(status: str) -> str:
    match status:
        case "NO_PRIMARY_KEY":
            return (
                "the connector knows no key by which it could read the table in parts. If the table has "
                "got a key, the connector learns of it with the next change of a row"
            )
        case "SQL_EXCEPTION":
            return "the database refused a query of the connector; the log of Connect has its message"
        case "UNKNOWN_SCHEMA":
            return (
                "the connector does not find the table. If the table was a partition or left out when the "
                "connector was last configured, bring the pipeline up again, and take a new snapshot"
            )
        case _:
            return f"the connector left the table out: {status or 'no reason given'}"
