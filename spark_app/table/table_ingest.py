"""One table of a run: its state, and what a run can do with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame

from spark_app.columns.table_columns import TableColumns, columns_of_table
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.reports import Committed, Serviced
from spark_app.sources.event import EventSource, OffsetRange, TopicExtent
from spark_app.table.batch import Applied, BatchApplier, Phases, TableParts, committed_report
from spark_app.table.batch_mode import Merging
from spark_app.table.deleted_keys import DeletedKeys
from spark_app.table.known_commits import KnownCommits
from spark_app.table.newer_rows import NewerRows
from spark_app.table.policy_change import check_layout, has_other_deletes, with_deletes_of
from spark_app.table.services import TableServices
from spark_app.table.setting_aside import SettingAside
from spark_app.table.table_state import TableState
from spark_app.table.topic_reader import TopicReader, events_behind
from spark_app.wire.schemas import Schemas
from spark_app.wire.topic_form import TopicForm
from tributary.contract.column_names import HUDI_PREFIX


class TableIngest:
    """Keeps one table equal to its topic. Two threads must not use it at the same time.

    name             source.schema.table
    quarantine_path  the folder for its events that cannot be applied
    form             how its events are written
    older            has the events that `source` no longer holds
    deleted_path     the folder for its deleted keys, if its source does not keep the order of changes

    It recovers from the table itself at its first use, and after `forget`."""

    def __init__(
        self,
        name: str,
        topic: str,
        source: EventSource,
        hudi: HudiTable,
        quarantine_path: str,
        form: TopicForm,
        older: EventSource | None = None,
        deleted_path: str | None = None,
    ) -> None:
        self.quarantine_path: Final = quarantine_path
        self.form: Final = form
        self.parts: Final = TableParts(
            name=name,
            log=form.log,
            hudi=hudi,
            reader=TopicReader(topic, source, older),
            versions=form.schemas(hudi.policy),
            aside=SettingAside(topic, quarantine_path, hudi.policy),
            commits=KnownCommits(name, hudi),
            newer=None if form.log.keeps_order else self._newer(hudi, deleted_path),
        )
        self.services: Final = TableServices(hudi, self.check_timeline)
        self._state: TableState | None = None

    def new_versions(self) -> Schemas:
        """Return the schemas of a table whose events have not been read yet."""
        return self.form.schemas(self.hudi.policy)

    def _newer(self, hudi: HudiTable, deleted_path: str | None) -> NewerRows:
        """Return what keeps the newer rows. A table with soft deletes remembers its deleted keys itself."""
        if hudi.policy.deletes == "soft":
            return NewerRows(hudi.read, deleted=None)
        items = self.form.items
        assert items is not None, "such a source has items"
        assert deleted_path is not None, "hard deletes need a folder to remember them"
        return NewerRows(hudi.read, DeletedKeys(hudi.spark, deleted_path, items.remembered))

    @property
    def name(self) -> str:
        return self.parts.name

    @property
    def topic(self) -> str:
        return self.parts.reader.topic

    @property
    def hudi(self) -> HudiTable:
        return self.parts.hudi

    def recover(self) -> None:
        """Read positions and columns from the table itself, and finish what a crash left behind.

        Rows that were written under another `deletes` policy are rewritten. Raises
        `PolicyChanged` if another layout than the table's is asked for."""
        self._state = None
        if self.parts.newer is not None:
            self.parts.newer.forget()
        recovered = self.parts.commits.recover()
        self.services.recover(recovered.commits_since_services)
        if recovered.commit is None:
            self._state = TableState(Ledger(self.topic, buckets=self.hudi.policy.buckets))
            return
        policy, ledger, stored = self.hudi.policy, recovered.commit.ledger, self.hudi.read()
        check_layout(self.hudi.path, self.hudi.stored_as(), ledger.buckets, policy)
        columns = columns_of_table(stored.schema, ledger.key_columns)
        ledger = replace(ledger, buckets=policy.buckets)
        if has_other_deletes(stored, policy):
            rows = with_deletes_of(policy, stored, columns.names)
            ledger = self.parts.commits.replace_all(rows, ledger, retyped=())
        self._state = TableState(ledger, columns, recovered.commit.partitions)

    def begin_at(self, positions: Mapping[int, int]) -> None:
        """Leave out the events before these positions, unless there is a table already."""
        if not self.state.has_table:
            self._state = replace(self.state, ledger=replace(self.ledger, positions=positions))

    def forget(self) -> None:
        """Forget the state after a failure, because only the table itself can say whether it has a commit."""
        self._state = None

    @property
    def is_recovered(self) -> bool:
        """Return whether the state is known. To recover it, the app reads from S3."""
        return self._state is not None

    @property
    def state(self) -> TableState:
        if self._state is None:
            self.recover()
        assert self._state is not None
        return self._state

    @property
    def ledger(self) -> Ledger:
        return self.state.ledger

    @property
    def columns(self) -> TableColumns | None:
        """The source's columns of the table; None if there is no table yet, or none is known."""
        return None if self._state is None else self._state.columns

    @property
    def partitions_written(self) -> frozenset[str]:
        """The paths of the partitions that the last commit wrote to."""
        return self.state.partitions_written

    @property
    def source(self) -> EventSource:
        return self.parts.reader.source

    def pending(self, extent: TopicExtent, limit: int) -> tuple[OffsetRange, ...]:
        """Return the ranges to apply next, at most `limit` events. Raises `PositionLost`, `AnotherTopic`."""
        return self.parts.reader.pending(self.ledger, extent, limit)

    def behind(self, extent: TopicExtent) -> int:
        """Return how many of the topic's events are not applied yet. Offsets without an event count, too."""
        return events_behind(self.ledger, extent)

    def apply(self, ranges: tuple[OffsetRange, ...]) -> Committed | None:
        """Commit the events of the ranges that were not applied before (`BatchApplier.apply`)."""
        mode = Merging(self.hudi, self.parts.commits, self.state, self.parts.log.keeps_order)
        applied = BatchApplier(self.parts, self.state, mode).apply(ranges)
        return self._take(applied)

    def check_timeline(self) -> None:
        """Raise `AnotherWriter` or `ClockIsBehind` if nothing may be written now."""
        self.parts.commits.check(is_there=self.columns is not None)

    def is_service_due(self, *, is_idle: bool, is_apart: bool = False) -> bool:
        """Return whether to `maintain` now (`TableServices.are_due`)."""
        return self.columns is not None and self.services.are_due(is_idle=is_idle, is_apart=is_apart)

    def maintain(self) -> None:
        """Run the table services that are due. Nothing else may write to the table while they run."""
        self.services.run_due()

    def serve(self) -> Serviced:
        """Run all table services. Nothing else may write to the table while they run."""
        started = time.monotonic()
        if self.state.has_table:
            self.services.run_all()
        return Serviced(self.name, round(time.monotonic() - started, 3))

    def rewrite(self, rows: DataFrame) -> None:
        """Replace the table's rows by these, in one commit without events.

        Raises `AnotherWriter` and `ClockIsBehind`."""
        ledger = self.parts.commits.replace_all(rows, self.state.ledger, retyped=())
        self._state = replace(self.state, ledger=ledger)

    def stored(self) -> DataFrame:
        """Return the table's rows in the form in which they are written."""
        stored = self.hudi.read()
        return stored.select(*[name for name in stored.columns if not name.startswith(HUDI_PREFIX)])

    def commit_without_events(self, rows: DataFrame, ledger: Ledger, phases: Phases) -> Committed:
        """Write rows in the form in which the table holds them (`stored`), with a new ledger.

        Raises `AnotherWriter` and `ClockIsBehind`."""
        self.check_timeline()
        self.hudi.upsert(rows, commit_metadata(ledger))
        committed_us = time.time_ns() // 1000
        commit, continued_from = self.parts.commits.find(ledger)
        report = committed_report(self.name, commit, committed_us, phases)
        after = replace(self.state, ledger=continued_from, partitions_written=commit.partitions)
        return self._take_commit(Applied(after, report), report)

    def _take(self, applied: Applied) -> Committed | None:
        if applied.report is None:
            self._state = applied.state
            return None
        return self._take_commit(applied, applied.report)

    def _take_commit(self, applied: Applied, report: Committed) -> Committed:
        self._state = applied.state
        self.services.commits += 1
        return report
