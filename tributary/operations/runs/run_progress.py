"""The progress of a run for each table, from the reports that the Spark app writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from spark_app.reports import (
    Blocked,
    BronzeServiced,
    Cataloged,
    CatalogFailed,
    CaughtUp,
    Committed,
    DerivedRow,
    Erased,
    EventsDeleted,
    EventsDropped,
    Failed,
    Freshness,
    Paused,
    Replayed,
    Report,
    Resumed,
    Serviced,
    Started,
    StepsChosen,
    Stopped,
    Trimmed,
)
from tributary.contract.remedies import Remedies, in_words, remedies_from_json
from tributary.operations.remedy_words import remedy_words

State = Literal["waiting", "reading", "caught up", "retrying", "blocked", "paused", "replayed", "ended"]
RECENT = timedelta(minutes=5)
"""How old the commits are, at most, whose freshness is shown."""


@dataclass(frozen=True)
class CommitFreshness:
    """The freshness of a commit: when it completed, and how many events it has."""

    at: datetime
    events: int
    of_events: Freshness


@dataclass(frozen=True)
class TableProgress:
    """One table in the run. Counts are of this run. `positions` are the next offsets, by partition.

    `freshness` is of the commits in the table's last five minutes. In a replay, `replayed` events were
    applied and `quarantined` events are left. `error` says what is wrong, and `remedies` what to do.
    """

    state: State = "waiting"
    commits: int = 0
    events: int = 0
    rows: int = 0
    deletes: int = 0
    quarantined: int = 0
    positions: Mapping[int, int] = field(default_factory=dict)
    freshness: tuple[CommitFreshness, ...] = ()
    replayed: int = 0
    error: str | None = None
    remedies: Remedies = ()

    @property
    def failure(self) -> str | None:
        """The error with its remedy, or None if there is no error."""
        if self.error is None:
            return None
        return " ".join([self.error, *([in_words(self.remedies, remedy_words)] if self.remedies else [])])

    @property
    def p50_ms(self) -> int | None:
        """The median freshness of the recent events, from the medians of their commits."""
        return _quantile(0.5, ((one.events, one.of_events.p50) for one in self.freshness))

    @property
    def p95_ms(self) -> int | None:
        """The 95th percentile of the freshness of the recent events, from those of their commits."""
        return _quantile(0.95, ((one.events, one.of_events.p95) for one in self.freshness))


@dataclass(frozen=True)
class RunProgress:
    """All tables of the run, by name.

    steps   which steps the app has chosen
    upkeep  what it has done to keep events and history small
    dropped events that no derived table has
    """

    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    steps: StepsChosen | None = None
    upkeep: tuple[Erased | Trimmed | EventsDeleted | BronzeServiced, ...] = ()
    dropped: tuple[EventsDropped, ...] = ()

    def after(self, report: Report) -> RunProgress:
        """Return the progress after this report."""
        match report:
            case StepsChosen():
                return replace(self, steps=report)
            case Started(tables):
                return replace(self, tables={**dict.fromkeys(tables, TableProgress()), **self.tables})
            case Stopped(outcomes, not_in_catalog):
                ended = {
                    name: _ended(self._of(name), outcome, not_in_catalog.get(name))
                    for name, outcome in outcomes.items()
                }
                return replace(self, tables=ended)
            case Cataloged() | CatalogFailed() | Serviced() | DerivedRow():
                return self
            case Committed() | CaughtUp() | Failed() | Blocked() | Paused() | Resumed() | Replayed():
                after = _after(self._of(report.table), report)
                return replace(self, tables={**self.tables, report.table: after})
            case Erased() | Trimmed() | EventsDeleted() | BronzeServiced():
                return replace(self, upkeep=(*self.upkeep, report))
            case EventsDropped():
                return replace(self, dropped=(*self.dropped, report))

    @property
    def failures(self) -> Mapping[str, str]:
        """The tables with errors: what is wrong, and what to do."""
        return {name: table.failure for name, table in self.tables.items() if table.failure is not None}

    @property
    def p50_ms(self) -> int | None:
        """The median freshness of the recent events of all tables."""
        return TableProgress(freshness=self._freshness).p50_ms

    @property
    def p95_ms(self) -> int | None:
        """The 95th percentile of the freshness of the recent events of all tables."""
        return TableProgress(freshness=self._freshness).p95_ms

    @property
    def is_caught_up(self) -> bool:
        """Tell whether there are tables, and each had applied all its source's events at the last check."""
        return bool(self.tables) and all(
            table.state in ("caught up", "ended") for table in self.tables.values()
        )

    def since(self, moment: datetime) -> RunProgress:
        """Return the same with the freshness of the commits since then alone."""
        tables = {
            name: replace(table, freshness=tuple(one for one in table.freshness if one.at >= moment))
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    @property
    def _freshness(self) -> tuple[CommitFreshness, ...]:
        return _recent([one for table in self.tables.values() for one in table.freshness])

    def _of(self, name: str) -> TableProgress:
        return self.tables.get(name, TableProgress())


def parse_report(line: str) -> Report | None:
    """Return the report in one line of the app's output, or None if the line is no report."""
    try:
        found: dict[str, Any] = json.loads(line)
        kind = found.pop("event")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    match kind:
        case "steps":
            return StepsChosen(**found)
        case "started":
            return Started(tuple(found["tables"]))
        case "commit":
            freshness = found["freshness_ms"]
            found["freshness_ms"] = None if freshness is None else Freshness(**freshness)
            found["positions"] = {int(partition): offset for partition, offset in found["positions"].items()}
            return Committed(**found)
        case "caught_up":
            return CaughtUp(**found)
        case "failed":
            return Failed(**found)
        case "blocked":
            return Blocked(**{**found, "remedies": remedies_from_json(found["remedies"])})
        case "paused":
            return Paused(**found)
        case "resumed":
            return Resumed(**found)
        case "replayed":
            return Replayed(**found)
        case "serviced":
            return Serviced(**found)
        case "erased":
            listed = {name: tuple(found[name]) for name in ("keys", "linked", "unknown")}
            return Erased(**{**found, **listed})
        case "trimmed":
            kept_from = {int(partition): offset for partition, offset in found["kept_from"].items()}
            return Trimmed(**{**found, "kept_from": kept_from})
        case "events_deleted":
            return EventsDeleted(**found)
        case "bronze_serviced":
            return BronzeServiced(**found)
        case "cataloged":
            return Cataloged(**found)
        case "catalog_failed":
            return CatalogFailed(**found)
        case "derived_row":
            return DerivedRow(**found)
        case "events_dropped":
            return EventsDropped(**found)
        case "stopped":
            return Stopped(**found)
    return None


def _after(
    table: TableProgress,
    report: Committed | CaughtUp | Failed | Blocked | Paused | Resumed | Replayed,
) -> TableProgress:
    well = replace(table, error=None, remedies=())
    match report:
        case CaughtUp():
            return replace(well, state="caught up")
        case Failed(error=error):
            return replace(well, state="retrying", error=error)
        case Blocked(error=error, remedies=remedies):
            return replace(well, state="blocked", error=error, remedies=remedies)
        case Paused():
            return replace(table, state="paused")
        case Resumed():
            return replace(well, state="waiting")
        case Replayed(applied=applied, left=left):
            return replace(well, state="replayed", replayed=applied, quarantined=left)
    fresh = table.freshness
    if report.freshness_ms is not None:
        at = datetime.fromisoformat(report.at)
        fresh = _recent([*fresh, CommitFreshness(at, report.events, report.freshness_ms)])
    return replace(
        well,
        state="reading",
        commits=table.commits + 1,
        events=table.events + report.events,
        rows=table.rows + report.rows,
        deletes=table.deletes + report.deletes,
        quarantined=table.quarantined + report.quarantined,
        positions=report.positions,
        freshness=fresh,
    )


def _recent(commits: Sequence[CommitFreshness]) -> tuple[CommitFreshness, ...]:
    """Return the commits of the five minutes up to the last one."""
    last = max((one.at for one in commits), default=None)
    return () if last is None else tuple(one for one in commits if last - one.at <= RECENT)


def _ended(table: TableProgress, outcome: str, catalog_error: str | None) -> TableProgress:
    """Return the table at the end of the run. If it was blocked, its last report has the remedy."""
    if outcome == "ok":
        error = None if catalog_error is None else f"The catalog does not show its columns: {catalog_error}"
        return replace(table, state="ended", error=error, remedies=())
    return replace(table, state="blocked", error=outcome)


def _quantile(fraction: float, weighted: Iterable[tuple[int, int]]) -> int | None:
    """Return the smallest value that covers this fraction of the weight, or None without any weight."""
    by_value = sorted((value, weight) for weight, value in weighted if weight > 0)
    left = fraction * sum(weight for _, weight in by_value)
    for value, weight in by_value:
        left -= weight
        if left <= 0:
            return value
    return None
