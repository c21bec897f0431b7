"""Which row of the source a key stood for, when primary keys change within a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from spark_app.positions.source_log import NOWHERE


class Place(NamedTuple):
    """A place in the source's order: snapshots before it in the batch, its position; and `after`, 1
    for right after the change that is there.

    Not the offset: a change that Debezium sends again, with a new one, is of the row that it was of.
    """

    snapshots: int
    position: bytes
    after: int = 0


BEGINNING = Place(-1, NOWHERE)
END = Place(2**31 - 1, NOWHERE)


@dataclass(frozen=True, order=True)
class Move:
    """The row that had key `old` has key `new` from `place` on."""

    place: Place
    old: str
    new: str


@dataclass(frozen=True)
class Tenure:
    """From `since` to before `until`, `key` stood for the row `row_id`.

    `stored_key` is the key under which the table held that row before the batch; None: it did not exist.
    """

    key: str
    since: Place
    until: Place
    row_id: str
    stored_key: str | None


def tenures(moves: Iterable[Move]) -> tuple[Tenure, ...]:
    """Who held each key when, for the keys that the moves touch; a key that none touches is its own row."""
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
