"""The commits of one table that this app knows. They reveal another writer and a wrong clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from spark_app.hudi.timeline import Timeline
from spark_app.ledger.commits import LedgerCommit, ledger_commits, replacement_metadata
from spark_app.ledger.ledger import Ledger


class AnotherWriter(OSError):
    """Another app has changed the table since this app read its ledger."""


class ClockIsBehind(OSError):
    """By the clock here, the table's last commit is in the future."""


@dataclass(frozen=True)
class RecoveredTable:
    """A table as its timeline shows it.

    `commit` is the last commit with a ledger, None if there is no table. `commits_since_services` is the
    number of commits since its last services."""

    commit: LedgerCommit | None = None
    commits_since_services: int = 0


@dataclass
class KnownCommits:
    """The instants of the commits that this app wrote or found. `name` is the table's name, for messages."""

    name: str
    hudi: HudiTable
    instants: frozenset[str] = frozenset()

    def recover(self) -> RecoveredTable:
        """Finish what a crash left behind, and return the table's state after that. Raises `LedgerError`."""
        self.instants = frozenset()
        self.hudi.remove_leftovers()
        if not self.hudi.exists():
            return RecoveredTable()
        # Read the timeline before the ledger. Then a later commit of another app is unknown, and is refused.
        timeline = self.hudi.finish_compactions()
        commit = next(ledger_commits(self.hudi, timeline), None)
        self.instants = timeline.requested
        return RecoveredTable(commit, timeline.commits_since_services)

    def check(self, *, is_there: bool) -> Timeline:
        """Return the timeline that the next write continues. `is_there`: the table is known to exist.

        Raises `AnotherWriter` if the timeline has commits that this app does not know. An app that was paused
        and resumes after another app took over is too late. (If both write at the same time, Hudi rolls one
        of them back; see also `find`.) Raises it, too, if the last known commit is gone, or the whole table:
        somebody has restored an earlier state of the table, or removed it.

        Raises `ClockIsBehind` if the next instant would come before the last one. Hudi orders instants by
        their names, which are times. Readers never see the rows of an instant that seems older than a
        compaction."""
        try:
            timeline = self.hudi.existing_timeline() if is_there else self.hudi.timeline()
        except FileNotFoundError as error:
            raise AnotherWriter(f"{self.name} has lost its table: {error}") from error
        if timeline.requested - self.instants:
            raise AnotherWriter(f"{self.name} has commits of another app that is running, or was until now")
        if self.instants and max(self.instants) not in timeline.requested:
            raise AnotherWriter(f"{self.name} has lost its last commit: it is not what it was")
        now = instant_of(datetime.now(UTC))
        if timeline.last_instant is not None and now <= timeline.last_instant:
            raise ClockIsBehind(
                f"{self.name} was last written at {timeline.last_instant}, and the clock here says {now} "
                "(UTC): set it right, or wait until then"
            )
        return timeline

    def replace_all(self, rows: DataFrame, ledger: Ledger, retyped: tuple[str, ...]) -> Ledger:
        """Replace all rows of a table that exists, in a commit that applies no events. Return its ledger.

        Raises `AnotherWriter` and `ClockIsBehind`."""
        self.check(is_there=True)
        written = ledger.next_commit()
        self.hudi.replace_all(rows, replacement_metadata(written, retyped))
        _, continued_from = self.find(written)
        if continued_from != written:
            raise AnotherWriter(f"another app has written {self.name} while its rows were rewritten")
        return written

    def find(self, ledger: Ledger) -> tuple[LedgerCommit, Ledger]:
        """Return the commit of the ledger, which was just written, and the ledger to continue from.

        The two ledgers differ if a late app has also committed. What that app undid is then applied again,
        from the lowest ledger of the new commits."""
        timeline = self.hudi.existing_timeline()
        commits = list(ledger_commits(self.hudi, timeline, self.instants))
        self.instants &= timeline.requested
        self.instants |= {commit.instant for commit in commits}
        own = next((commit for commit in commits if commit.ledger == ledger), None)
        if own is None:
            raise AnotherWriter(f"another app has undone a commit of {self.name}")
        if len(commits) == 1:
            return own, ledger
        return own, min((commit.ledger for commit in commits), key=_events_applied)


def _events_applied(ledger: Ledger) -> tuple[int, int]:
    return ledger.epoch, sum(ledger.positions.values())
