"""Separate real differences from changes that are still on their way from the database to the lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tributary.operations.reconcile.comparison import Comparison, Difference, Key

MAX_ROUNDS = 5


@dataclass(frozen=True)
class Findings:
    """The findings about a table after some rounds.

    Every round reads the database, waits until the lake holds all of that, and reads the lake. A row that
    changes in between differs without being wrong. The next round finds it equal, or differing in another
    way. A wrong row keeps the same difference. `certain` differences were seen in two rounds in a row,
    `suspects` in one.
    """

    rows: int = 0
    certain: Mapping[Key, Difference] = field(default_factory=dict)
    suspects: Mapping[Key, Difference] = field(default_factory=dict)
    rounds: int = 0

    def after(self, comparison: Comparison) -> Findings:
        """Return the findings after one more round."""
        found = {_hashable(difference.key): difference for difference in comparison.differences}
        watched = {**self.certain, **self.suspects}
        if self.rounds:
            # The first round proved every row that it did not list. So a row that differs only now has
            # changed since then.
            found = {key: difference for key, difference in found.items() if key in watched}
        certain = {key: one for key, one in found.items() if _is_same(one, watched.get(key))}
        suspects = {key: one for key, one in found.items() if key not in certain}
        return Findings(comparison.rows, certain, suspects, self.rounds + 1)

    @property
    def is_open(self) -> bool:
        """Tell whether another round can decide more."""
        return self.rounds == 0 or (bool(self.suspects) and self.rounds < MAX_ROUNDS)

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(self.certain.values())

    @property
    def unsettled(self) -> tuple[Difference, ...]:
        """Rows that were written to during every round, so no round saw them at rest."""
        return () if self.is_open else tuple(self.suspects.values())


def _hashable(key: Key) -> Key:
    return tuple(tuple(part) if isinstance(part, list) else part for part in key)


def _is_same(one: Difference, other: Difference | None) -> bool:
    # Compared as text, because a NaN is not equal to itself.
    return other is not None and repr(one) == repr(other)
