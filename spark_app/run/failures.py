"""What a run does about the failure of one table: block it, or retry it later."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from spark_app.acceleration.missing_member import MissingMember, missing_member
from spark_app.reports import Blocked, Failed, ProgressWriter
from spark_app.run.pace import Pace
from spark_app.run.table_run import TableRun
from tributary.contract.errors import TributaryError, told_by
from tributary.contract.remedies import remedies_for_table


@dataclass(frozen=True)
class Failures:
    """Notes the failures of a run's tables, and reports them.

    A run that does not follow gives a table up after the attempts that `pace` allows."""

    progress: ProgressWriter
    pace: Pace
    follow: bool

    def take(self, run: TableRun, error: Exception) -> None:
        """Block the table if only a person can mend this. Otherwise, retry it later."""
        lasting = error if isinstance(error, TributaryError) else missing_member(error)
        if lasting is None:
            self.retry_later(run, error)
        else:
            self.block(run, lasting)

    def block(self, run: TableRun, error: TributaryError) -> None:
        """Leave the table alone until a person has done something."""
        run.is_blocked, run.error = True, error.reason
        run.set_outcome("blocked", error)
        remedies = remedies_for_table(error.remedies, run.table.name)
        is_lacking = isinstance(error, MissingMember)
        self.progress.write(Blocked(run.table.name, run.error, remedies, is_lacking))

    def retry_later(self, run: TableRun, error: Exception) -> None:
        """Schedule a retry. The table then reads its state again, because the failed commit may be in it."""
        self.look_again_later(run, error)
        if not run.is_blocked:
            run.table.forget()

    def look_again_later(self, run: TableRun, error: Exception) -> None:
        """Schedule another look at the table's topic. Nothing was committed, so the table keeps its state."""
        run.attempts += 1
        run.is_caught_up = False
        run.error = told_by(error)
        print(f"{run.table.name}: {type(error).__name__}: {error}", file=sys.stderr)  # Also Java's calls.
        if not self.follow and run.attempts >= self.pace.attempts:
            run.is_blocked = True
            run.set_outcome("blocked", error)
            self.progress.write(Blocked(run.table.name, run.error))
            return
        run.set_outcome("retrying", error)
        wait = min(self.pace.first_retry_seconds * 2 ** (run.attempts - 1), self.pace.longest_retry_seconds)
        run.not_before = time.monotonic() + wait
        self.progress.write(Failed(run.table.name, run.error, run.attempts, wait))
