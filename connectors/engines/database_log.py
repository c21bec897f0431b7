"""How much of its log a database keeps, and how much of it the connector has not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName


@dataclass(frozen=True)
class DatabaseLog:
    """The log of a source's database, as far as its engine tells. None: it does not tell.

    kept     bytes of log that the server keeps
    unread   bytes of log that the connector has yet to read
    left     bytes of log that may still be written before the server removes what the connector needs
    behind   seconds between the last change in the log and the last one that the connector has sent
    problem  why the connector loses changes, or will, in a sentence for a person
    first    about how many rows each table has, as long as the connector reads its first snapshot
             and somebody shows them
    """

    kept: int | None = None
    unread: int | None = None
    left: int | None = None
    behind: float | None = None
    problem: str | None = None
    first: Mapping[TableName, int] | None = None


@dataclass(frozen=True)
class LogReader:
    """The connector that reads a database's log.

    offset      returns the offset that is stored for it; None: none yet. Raises TributaryError.
    has_failed  returns whether it or a task of it has failed. Raises TributaryError.
    """

    offset: Callable[[], Mapping[str, Any] | None]
    has_failed: Callable[[], bool]

    def reads_first_snapshot(self) -> bool:
        """Return whether it reads its first snapshot now, as far as that is known.

        Until the snapshot is complete it has no offset, or one of the snapshot. A connector that has failed
        by then reads nothing.
        """
        try:
            offset = self.offset()
            return (offset is None or bool(offset.get("snapshot"))) and not self.has_failed()
        except TributaryError:
            return False


def size_text(size: float) -> str:
    """Return a number of bytes in the largest unit that fits, such as `16.8 MB`."""
    for unit, bytes_in_it in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_in_it:
            return f"{size / bytes_in_it:,.1f} {unit}"
    return f"{size:,.0f} bytes"
