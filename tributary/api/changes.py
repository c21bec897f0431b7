"""What changed in a table between two of its states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_KEY, _SEQ, _DELETED = "_key", "_seq", "_deleted"


@dataclass(frozen=True)
class Changes:
    """The rows that differ between two states of a table.

    since, until  the instants of the states, in Hudi's form
    inserted      rows that only the later state has
    updated       rows that an event wrote in between, as they are in the later state
    deleted       rows that only the earlier state has, as they were
    """

    since: str
    until: str
    inserted: pa.Table
    updated: pa.Table
    deleted: pa.Table


def changes_between(since: str, before: pa.Table, until: str, after: pa.Table) -> Changes:
    """Return the changes from one state to a later one. A row that is only kept as deleted is deleted.

    Each event gives its row another `_seq`. So a row whose event changed no value is updated, too."""
    import pyarrow.compute as pc

    was, now = _live(before), _live(after)
    place = pc.index_in(now[_KEY], value_set=was[_KEY])
    is_new = pc.is_null(place)
    is_same = pc.fill_null(pc.equal(now[_SEQ], was[_SEQ].take(place)), fill_value=False)
    is_gone = pc.is_null(pc.index_in(was[_KEY], value_set=now[_KEY]))
    return Changes(
        since,
        until,
        inserted=now.filter(is_new),
        updated=now.filter(pc.and_(pc.invert(is_new), pc.invert(is_same))),
        deleted=was.filter(is_gone),
    )


def _live(rows: pa.Table) -> pa.Table:
    """Return the rows that the source has."""
    import pyarrow.compute as pc

    if _DELETED not in rows.column_names:
        return rows
    return rows.filter(pc.invert(pc.fill_null(rows[_DELETED], fill_value=False)))
