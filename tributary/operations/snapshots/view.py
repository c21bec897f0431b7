"""Show the online snapshots of tables to a person, or as JSON values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tributary.contract.online_snapshot import Failed, Noticed, Read, Reading, Record


def state_of(record: Record) -> str:
    """Return the state of the record's table, in a word or two."""
    match record:
        case Noticed() | Failed():
            return "differs"
        case Read():
            return "read again"
        case Reading(rows=rows, total=total) if total:
            return f"reading again, {100 * rows // total} %"
        case _:
            return "reading again"


def is_different(record: Record) -> bool:
    """Return whether the table differs from its source until a person acts."""
    return isinstance(record, Noticed | Failed)


def snapshot_facts(record: Record) -> dict[str, Any]:
    """Return the facts of a snapshot. `rows` and `total` are None unless the connector reads the table."""
    reading = record if isinstance(record, Reading) and record.total else None
    return {
        "state": record.state,
        "since": _since(record),
        "reasons": list(record.request.reasons),
        "rows": None if reading is None else reading.rows,
        "total": None if reading is None else reading.total,
        "problem": record.problem if isinstance(record, Failed) else None,
    }


def paragraph(record: Record) -> str:
    """Return what a person should know about the table, and what to do."""
    table, reasons = record.request.table, "; ".join(record.request.reasons)
    match record:
        case Noticed():
            return (
                f"{table} differs from its source since {_since(record)}: {reasons}. Run {_command(record)}"
            )
        case Failed(problem=problem):
            return (
                f"{table} had to be read again since {_since(record)}, because {reasons}. But {problem}. "
                f"To try again, run {_command(record)}"
            )
        case _:
            return f"{table} is read again since {_since(record)}: {reasons}."


def _since(record: Record) -> str:
    return datetime.fromtimestamp(record.request.requested_us / 1e6, UTC).isoformat(timespec="seconds")


def _command(record: Record) -> str:
    return f"tributary snapshot '{record.request.table}'"
