"""The tables of a run: which topics have one, which are paused or removed, and whose snapshot has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from spark_app.reports import Paused, ProgressWriter, Resumed, Started
from spark_app.run.new_tables import NewTables
from spark_app.run.orphan_files import OrphanStore
from spark_app.run.outcome import OutcomeStore
from spark_app.run.pause_files import PauseStore
from spark_app.run.snapshot_files import SnapshotStore
from spark_app.run.table_run import TableRun
from spark_app.sources.event import Dated, EventSource
from spark_app.sources.passing_failures import PASSING_FAILURES
from spark_app.table.table_ingest import TableIngest
from tributary.contract.online_snapshot import Read


@dataclass
class TableRuns:
    """The tables of a run, by topic, and what the stores say about them.

    table_of   returns a topic's table, or None if the topic does not belong to the lake
    follow     whether the run takes up topics that appear later, and has no end
    snapshots  has the online snapshots whose ends are to be applied, if given
    pauses     says which tables are paused, if given
    orphans    says of which topics the tables were removed, if given
    new        says which tables may be made, if given
    """

    source: EventSource
    table_of: Callable[[str], TableIngest | None]
    progress: ProgressWriter
    outcomes: OutcomeStore
    follow: bool
    snapshots: SnapshotStore | None = None
    pauses: PauseStore | None = None
    orphans: OrphanStore | None = None
    new: NewTables | None = None
    by_topic: dict[str, TableRun] = field(default_factory=dict)
    _knows_pauses: bool = False

    def __iter__(self) -> Iterator[TableRun]:
        return iter(self.by_topic.values())

    def __len__(self) -> int:
        return len(self.by_topic)

    def look(self) -> None:
        """Add a table for each new topic, and find the online snapshots that have ended.

        Without `follow`, a run takes only the topics at its start, up to their ends at that time. Raises the
        errors of the source.
        """
        ended = self._read_ended()
        if self.follow or not self.by_topic:
            self._add_tables({} if ended is None else ended)
        if ended is not None:
            for run in self:
                run.snapshot = ended.get(run.table.name)

    def _read_ended(self) -> Mapping[str, Read] | None:
        """Return the online snapshots that have ended. None: they cannot be read now."""
        if self.snapshots is None:
            return {}
        try:
            return self.snapshots.read_ended()
        except PASSING_FAILURES as error:
            print(f"Cannot read the records of online snapshots: {error}", file=sys.stderr)
            return None

    def _add_tables(self, read_again: Collection[str]) -> None:
        found = {
            topic: table
            for topic in self.source.topics() - self.by_topic.keys()
            if (table := self.table_of(topic))
        }
        if found and self.orphans is not None:
            removed = self.orphans.read_removed()
            found = {topic: table for topic, table in found.items() if topic not in removed}
        if found and self.new is not None:
            allowed = self.new.allowed({topic: table.name for topic, table in found.items()}, read_again)
            found = {topic: table for topic, table in found.items() if topic in allowed}
        extents = self.source.extents(frozenset(found)) if found and not self.follow else {}
        newest = self._newest(frozenset(found))
        for topic, table in sorted(found.items()):
            run = TableRun(table, target=None, newest_event_ms=newest.get(topic, 0))
            if not self.follow:
                run.target, run.problem = extents[topic].end, extents[topic].problem
            self.by_topic[topic] = run
        if found:
            self.progress.write(Started(tuple(sorted(table.name for table in found.values()))))

    def _newest(self, topics: frozenset[str]) -> Mapping[str, int]:
        """Return when the newest event of each topic came, as far as the source can tell: it only orders.

        Brokers before Kafka 3.0 cannot."""
        if not topics or not isinstance(self.source, Dated):
            return {}
        try:
            return self.source.newest(topics)
        except PASSING_FAILURES as error:
            print(f"Cannot read how new the events of each topic are: {error}", file=sys.stderr)
            return {}

    def look_for_pauses(self) -> None:
        """Find the tables that are paused. If they cannot be read, that is an error only at the start."""
        if self.pauses is None:
            return
        try:
            paused = self.pauses.read_paused()
        except PASSING_FAILURES as error:
            if not self._knows_pauses:
                raise
            print(f"Cannot read which tables are paused: {error}", file=sys.stderr)
            return
        self._knows_pauses = True
        for run in self:
            was_paused, run.is_paused = run.is_paused, run.table.name in paused
            if run.is_paused and not was_paused:
                self.progress.write(Paused(run.table.name))
            elif was_paused and not run.is_paused:
                run.set_going()
                self.progress.write(Resumed(run.table.name))

    def record_outcomes(self) -> None:
        """Store changed outcomes. The next call retries those that cannot be written now."""
        for run in self:
            if not run.is_known or run.outcome == run.recorded:
                continue
            folder = run.table.quarantine_path
            try:
                if run.outcome is None:
                    self.outcomes.clear(folder)
                else:
                    self.outcomes.write(folder, run.outcome)
                run.recorded = run.outcome
            except PASSING_FAILURES as error:
                print(f"Cannot store the status of {run.table.name}: {error}", file=sys.stderr)
