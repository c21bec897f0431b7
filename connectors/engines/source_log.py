"""How much of its log a database keeps, and how much of it the connector has not read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLog:
    """The log of a source's database, as far as its engine tells. None: it does not tell.

    kept     bytes of log that the server keeps
    unread   bytes of log that the connector has yet to read
    left     bytes of log that may still be written before the server removes what the connector needs
    behind   seconds between the last change in the log and the last one that the connector has sent
    problem  why the connector loses changes, or will, in a sentence for a person
    """

    kept: int | None = None
    unread: int | None = None
    left: int | None = None
    behind: float | None = None
    problem: str | None = None


def size_text(size: float) -> str:
    """Return a number of bytes in the largest unit that fits, such as `16.8 MB`."""
    for unit, bytes_in_it in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_in_it:
            return f"{size / bytes_in_it:,.1f} {unit}"
    return f"{size:,.0f} bytes"
