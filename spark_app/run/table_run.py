"""One table's state in a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from spark_app.run.metrics import TableState
from spark_app.run.outcome import Outcome, State
from spark_app.run.turns import Queue
from spark_app.sources.event import TopicExtent
from spark_app.table.snapshot_end import is_end_due
from spark_app.table.table_ingest import TableIngest
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import Read


@dataclass
class TableRun:
    """One table's state in the run.

    working        the current work, which returns whether the table made progress
    queue          where the current or last work waited for its turn
    target         the offsets at which a run that does not follow ends. None: the run follows.
    problem        why the source could not say at the start where the topic ends
    held           the topic's extent at the last look
    outcome        the table's problem. None means that nothing is wrong, but only if `is_known`
    recorded       the outcome in the store
    lag            the number of unapplied events at the last look
    got_on_at      when the table last made progress
    began_at       when its current or last work began
    last_turn_at   when its last commit or service began. To recover is no turn.
    last_event_at  when its topic last had new events
    newest_event_ms
                   when the newest event of its topic at the start came, in milliseconds since 1970; 0 if
                   that is unknown
    snapshot       an online snapshot that Kafka holds to its end
    is_paused      a person wants the table to stay as it is for now
    """

    table: TableIngest
    target: Mapping[int, int] | None
    problem: TributaryError | None = None
    working: Future[bool] | None = None
    queue: Queue = Queue.CATCHING_UP
    held: TopicExtent | None = None
    attempts: int = 0
    not_before: float = 0.0
    error: str | None = None
    is_blocked: bool = False
    is_caught_up: bool = False
    is_known: bool = False
    outcome: Outcome | None = None
    recorded: Outcome | None = None
    lag: int = 0
    got_on_at: float = field(default_factory=time.monotonic)
    began_at: float = 0.0
    last_turn_at: float = 0.0
    last_event_at: float | None = None
    newest_event_ms: int = 0
    snapshot: Read | None = None
    is_in_service: bool = False
    is_paused: bool = False

    def set_well(self) -> None:
        self.attempts, self.error, self.outcome, self.is_known = 0, None, None, True
        self.got_on_at = time.monotonic()

    def set_going(self) -> None:
        """Note that the table continues after a pause, which does not count as time without progress."""
        self.is_caught_up = False
        self.got_on_at = time.monotonic()

    def set_outcome(self, state: State, error: Exception) -> None:
        before = self.outcome or self.recorded
        self.outcome, self.is_known = Outcome.of(state, error, before, self.table.name), True

    def look_at(self, held: TopicExtent) -> None:
        """Take note of the topic's extent."""
        if self.held is not None and held.end != self.held.end:
            self.last_event_at = time.monotonic()
        self.held = held

    def measure_lag(self) -> None:
        """Count the unapplied events of a recovered table. A look must have come before."""
        assert self.held is not None
        self.lag = self.table.behind(self.held)

    def begin(self, working: Future[bool]) -> None:
        self.working, self.began_at = working, time.monotonic()

    @property
    def is_behind(self) -> bool:
        """Return whether the table may have events to commit, as far as is known."""
        return self.table.is_recovered and not self.is_caught_up

    @property
    def extent(self) -> TopicExtent | None:
        """The topic's extent, up to the target."""
        if self.held is None or self.target is None:
            return self.held
        return replace(self.held, end=self.target, problem=self.held.problem or self.problem)

    def is_live(self, seconds: float) -> bool:
        """Return whether the topic had new events within the last `seconds`."""
        return self.last_event_at is not None and time.monotonic() - self.last_event_at <= seconds

    @property
    def state(self) -> TableState:
        is_behind = self.is_blocked or not self.is_caught_up
        stuck_seconds = time.monotonic() - self.got_on_at if is_behind else 0.0
        return TableState(self.table.name, self.lag, stuck_seconds, self.is_blocked)

    def is_behind_by_little(self, events: int) -> bool:
        """Return whether the table has something to commit, but at most `events`."""
        is_known = self.table.is_recovered and not (self.is_over or self.is_caught_up or self.is_blocked)
        return is_known and 0 < self.lag <= events

    @property
    def ended_snapshot(self) -> Read | None:
        """The online snapshot whose end the table has to apply now, if there is one."""
        if self.snapshot is None or not self.table.is_recovered:
            return None
        return self.snapshot if is_end_due(self.table, self.snapshot) else None

    @property
    def whole_snapshot(self) -> Read | None:
        """The online snapshot that has all rows of the topic's table, if there is one."""
        if self.snapshot is None or self.held is None or self.snapshot.request.condition is not None:
            return None
        ids = (self.snapshot.topic_id, self.held.topic_id)
        return self.snapshot if None in ids or ids[0] == ids[1] else None

    @property
    def is_over(self) -> bool:
        if self.working is not None:
            return False
        is_at_target = self.target is not None and self.is_caught_up and self.ended_snapshot is None
        return self.is_blocked or self.is_paused or is_at_target
