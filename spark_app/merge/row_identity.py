"""Row identity: which source row a key stood for when primary keys change within a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from spark_app.positions.source_log import NOWHERE


class Place(NamedTuple):
    """A place in the source's order.

    snapshots  how many snapshots of the batch come before it
    position   its position
    after      1 for the place right after the change at this position

    The offset is not part of it: a change that Debezium sends again has a new offset, but belongs to the same
    row."""

    snapshots: int
    position: bytes
    after: int = 0


BEGINNING = Place(-1, NOWHERE)
END = Place(2**31 - 1, NOWHERE)


@dataclass(frozen=True, order=True)
class Move:
    """A change of a primary key: the row with key `old` has key `new` from `place` on."""

    place: Place
    old: str
    new: str


@dataclass(frozen=True)
class Tenure:
    """The time from `since` to just before `until`, during which `key` stood for the row `row_id`.

    `stored_key` is the key under which the table held that row before the batch; None if the row did not
    exist."""

    key: str
    since: Place
    until: Place
    row_id: str
    stored_key: str | None


def tenures(moves: Iterable[Move]) -> tuple[Tenure, ...]:
    """Return which row held each key at which time, for the keys that the moves touch.

    A key that no move touches always stands for its own row."""
    holders: dict[str, list[tuple[Place, str, str | None]]] = {}

    def holder(key: str) -> tuple[str, str | None]:
        _, row_id, stored_key = holders.setdefault(key, [(BEGINNING, key, key)])[-1]
        return row_id, stored_key

    for move in sorted(moves):
        row_id, stored_key = holder(move.old)
        holder(move.new)
        holders[move.new].append((move.place, row_id, stored_key))
        vacated = move.place._replace(after=1)
        holders[move.old].append((vacated, f"{move.old} after {vacated}", None))
    return tuple(
        Tenure(key, since, until, row_id, stored_key)
        for key, held in holders.items()
        for (since, row_id, stored_key), until in zip(held, [*(h[0] for h in held[1:]), END], strict=True)
    )
