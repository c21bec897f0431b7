"""What a lake may show of items: each item's states in their order, and none before one that was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

State = int | None
"""An item's version, which no other state of that item has; None: there is no such item."""


@dataclass(frozen=True)
class Sight:
    """The ids of the items that a reader saw wrong."""

    doubled: tuple[str, ...] = ()
    gone_back: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        return self == Sight()


@dataclass
class ItemHistory:
    """The states that the items of one table have had. Writers and a reader may use it at the same time."""

    _states: defaultdict[str, list[State]] = field(default_factory=lambda: defaultdict(lambda: [None]))
    _seen: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def will_be(self, item: str, state: State) -> None:
        """Note a state, before the request that brings it about."""
        with self._lock:
            self._states[item].append(state)

    def see(self, rows: Sequence[tuple[str, int]]) -> Sight:
        """Compare what one reader sees now with what it saw before. `rows` are ids and versions."""
        shown: Mapping[str, int] = dict(rows)
        ids = [item for item, _ in rows]
        with self._lock:
            wrong = [item for item in {*self._states, *shown} if not self._advance(item, shown.get(item))]
            return Sight(
                doubled=tuple(sorted({item for item in ids if ids.count(item) > 1})),
                gone_back=tuple(sorted(item for item in wrong if shown.get(item) in self._states[item])),
                invented=tuple(sorted(item for item in wrong if shown.get(item) not in self._states[item])),
            )

    def last(self) -> Mapping[str, State]:
        with self._lock:
            return {item: states[-1] for item, states in self._states.items()}

    def _advance(self, item: str, state: State) -> bool:
        """Return whether the item had this state when it was last seen, or later."""
        states, seen = self._states[item], self._seen.get(item, 0)
        later = next((at for at in range(seen, len(states)) if states[at] == state), None)
        if later is not None:
            self._seen[item] = later
        return later is not None
