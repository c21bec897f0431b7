"""The services of one table: when to compact it, shorten its timeline and clean it, between its commits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of

COMMITS_BETWEEN_SERVICES, COMMITS_BEFORE_EARLY_SERVICES, MOST_COMMITS_BETWEEN_SERVICES = 20, 40, 60
"""How many commits to make before the services run.

A compaction takes some seconds. It waits until the table is idle, then until no other table has had its own
for a while. It does not wait indefinitely, because readers merge the log files until then. The timeline is
shortened after a compaction."""

COMMITTING_TO_COMPACTING = 3.0
"""After each part of a compaction, a busy table commits for this many times as long as the part took."""

SECONDS_BETWEEN_CLEANINGS, IDLE_SECONDS_BETWEEN_CLEANINGS = 600.0, 3600.0
"""How long to wait between cleanings. A cleaning lists all files of the table.

Without a compaction, only time makes files outdated."""


@dataclass
class TableServices:
    """Decides which services are due, and runs them. Nothing else may write to the table while one runs.

    `check_timeline` runs before a service writes. It raises if the table has changed unexpectedly."""

    hudi: HudiTable
    check_timeline: Callable[[], object]
    commits: int = 0
    """The commits since the last compaction, or since the timeline was last shortened."""
    _cleaned_at: float = field(default=-math.inf, init=False)
    _compacting_since: str | None = field(default=None, init=False)
    _next_part_at: float = field(default=-math.inf, init=False)

    def recover(self, commits: int) -> None:
        """Start over from the timeline: this app has no compaction under way."""
        self.commits, self._compacting_since = commits, None

    def are_due(self, *, is_idle: bool, is_apart: bool = False) -> bool:
        """Return whether to call `run_due` now.

        `is_idle`: the table has no event to apply. `is_apart`: no other table was served for a while."""
        if self._compacting_since is not None:
            return is_idle or time.monotonic() >= self._next_part_at
        enough = COMMITS_BEFORE_EARLY_SERVICES if is_apart else MOST_COMMITS_BETWEEN_SERVICES
        if is_idle:
            enough = COMMITS_BETWEEN_SERVICES
        return self.commits >= enough or (is_idle and self._is_cleaning_due(IDLE_SECONDS_BETWEEN_CLEANINGS))

    def run_due(self) -> None:
        """Run the services that are due, but only one part of a large table's compaction."""
        seconds_between_cleanings = IDLE_SECONDS_BETWEEN_CLEANINGS
        if self.commits >= COMMITS_BETWEEN_SERVICES:
            seconds_between_cleanings = SECONDS_BETWEEN_CLEANINGS
            self.check_timeline()
            if self.hudi.policy.storage == "merge_on_read" and self._compact_part():
                return
            self.hudi.shorten_timeline()
            self.commits = 0
        if self._is_cleaning_due(seconds_between_cleanings):
            self.hudi.clean()
            self._cleaned_at = time.monotonic()

    def run_all(self) -> None:
        """Run all services, due or not."""
        self.commits = max(self.commits, COMMITS_BETWEEN_SERVICES)
        self._cleaned_at = -math.inf
        self.run_due()
        while self._compacting_since is not None:
            self.run_due()

    def _compact_part(self) -> bool:
        """Run the next part of a compaction. Return whether more parts follow."""
        started = time.monotonic()
        if self._compacting_since is None:
            self._compacting_since = instant_of(datetime.now(UTC))
        is_more = self.hudi.compact_part(self._compacting_since)
        if not is_more:
            self._compacting_since = None
        now = time.monotonic()
        self._next_part_at = now + COMMITTING_TO_COMPACTING * (now - started)
        return is_more

    def _is_cleaning_due(self, seconds_between: float) -> bool:
        return time.monotonic() >= self._cleaned_at + seconds_between
