"""How the numbers of a lake move, from one look of the console to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tributary.console.view import LakeView
from tributary.contract.online_snapshot import Reading
from tributary.contract.table_name import TableName

_COMMITS = 30
_WINDOW = timedelta(seconds=15)
"""Over which time a rate is measured."""
_LEAST = timedelta(seconds=10)
"""How long a rate has to be known before a time follows from it. Commits come every few seconds, and a page
that has just been opened would tell many times too long or too short."""
_KEPT = timedelta(minutes=5)


@dataclass(frozen=True)
class Rates:
    """Events in a second, of all tables together, in the seconds before `at`.

    entered  into Kafka
    applied  by the Spark app
    """

    at: datetime
    entered: float
    applied: float


@dataclass(frozen=True)
class _Look:
    """By table, how many events its topic ever got, and how many of them the table has not applied."""

    at: datetime
    events: Mapping[TableName, tuple[int, int]]
    read_again: Mapping[TableName, int]


@dataclass
class Trends:
    """What the console has seen since it started. It only looks while a page is open."""

    _looks: deque[_Look] = field(default_factory=deque)
    _rates: deque[Rates] = field(default_factory=deque)
    _first: set[TableName] = field(default_factory=set)
    _freshness: dict[TableName, deque[tuple[str, float]]] = field(default_factory=dict)

    def add(self, view: LakeView) -> None:
        """Take note of a look."""
        events = {
            table.table: (table.ended, table.behind)
            for table in view.tables
            if table.ended is not None and table.behind is not None
        }
        read_again = {
            table.table: table.snapshot.rows for table in view.tables if isinstance(table.snapshot, Reading)
        }
        look = _Look(view.at, events, read_again)
        while self._looks and self._looks[0].at < view.at - _WINDOW:
            self._looks.popleft()
        if self._looks and (rates := _rates(self._looks[0], look)) is not None:
            self._rates.append(rates)
        while self._rates and self._rates[0].at < view.at - _KEPT:
            self._rates.popleft()
        self._looks.append(look)
        new = {one.table for one in view.catching_up() if one.is_new}
        self._first = self._first | new if new else set()
        for table in view.tables:
            if table.commit is None or table.commit.freshness is None:
                continue
            seen = self._freshness.setdefault(table.table, deque(maxlen=_COMMITS))
            if not seen or seen[-1][0] != table.commit.instant:
                seen.append((table.commit.instant, table.commit.freshness.p95 / 1000))

    @property
    def first_snapshot(self) -> Collection[TableName]:
        """The tables of a first snapshot that is under way, also those that are through with it."""
        return frozenset(self._first)

    @property
    def rates(self) -> Sequence[Rates]:
        """The rates of the last minutes, oldest first."""
        return tuple(self._rates)

    def freshness(self, table: TableName) -> tuple[float, ...]:
        """Return the p95 of a table's last commits in seconds, oldest first."""
        return tuple(seconds for _, seconds in self._freshness.get(table, ()))

    def time_to_apply(self, events: int, *, are_new_ones_counted: bool) -> timedelta | None:
        """Return how long the lake takes to apply events at its present rate, if that is known.

        are_new_ones_counted  whether the events that come meanwhile are among these
        """
        if not self._rates:
            return None
        last = self._rates[-1]
        if last.at - self._looks[0].at < _LEAST:
            return None
        speed = last.applied - (0 if are_new_ones_counted else last.entered)
        return timedelta(seconds=events / speed) if speed > 0 else None

    def time_left(self, table: TableName, snapshot: Reading) -> timedelta | None:
        """Return how long an online snapshot still takes at its present rate, if that is known."""
        if not self._looks or not snapshot.total:
            return None
        first, last = self._looks[0], self._looks[-1]
        seconds = (last.at - first.at).total_seconds()
        rows = last.read_again.get(table, 0) - first.read_again.get(table, 0)
        if rows <= 0 or seconds <= 0 or table not in first.read_again:
            return None
        return timedelta(seconds=max(0, snapshot.total - snapshot.rows) * seconds / rows)


def _rates(before: _Look, now: _Look) -> Rates | None:
    """Return the rates between two looks. A topic that was created again does not count."""
    seconds = (now.at - before.at).total_seconds()
    if seconds <= 0:
        return None
    entered = applied = 0
    for table, (ended, behind) in now.events.items():
        if table not in before.events:
            continue
        old_ended, old_behind = before.events[table]
        entered += max(0, ended - old_ended)
        applied += max(0, (ended - behind) - (old_ended - old_behind))
    return Rates(now.at, entered / seconds, applied / seconds)
