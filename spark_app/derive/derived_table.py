"""One derived table in the lake: its last record, and the commits that bring it to a new state."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION
from spark_app.derive.record import RECORD_KEY, Record, commit_metadata
from spark_app.derive.result_rows import (
    Columns,
    columns_of,
    deletes,
    difference,
    stored_columns,
    without_hudi,
)
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.spread import FewRows, ManyRows
from spark_app.reports import Committed
from spark_app.table.services import TableServices
from tributary.contract.table_name import TableName

_FEW = 10_000


@dataclass
class DerivedTable:
    """The table that holds the rows of a derivation. Only one app may write to it."""

    name: TableName
    hudi: HudiTable
    quarantine_path: str
    record: Record | None = field(default=None, init=False)
    services: TableServices = field(init=False)

    def __post_init__(self) -> None:
        self.services = TableServices(self.hudi, self.hudi.timeline)

    def recover(self) -> None:
        """Read the record of the last commit, and remove what an ended process has left."""
        self.hudi.remove_leftovers()
        timeline = self.hudi.timeline()
        commit = next(self.hudi.commits_with(RECORD_KEY, timeline), None)
        self.record = None if commit is None else Record.from_json(commit.text)
        if self.record is not None:
            # The table keeps its layout if the defaults of the lake file change.
            layout = {
                "storage": self.hudi.stored_as().storage,
                "buckets": self.record.buckets or self.hudi.policy.buckets,
            }
            self.hudi = replace(self.hudi, policy=self.hudi.policy.model_copy(update=layout))
            self.services = TableServices(self.hudi, self.hudi.timeline)
        self.services.recover(timeline.commits_since_services)

    @property
    def next_number(self) -> int:
        return 1 if self.record is None else self.record.number + 1

    def has_rows(self) -> bool:
        """Return whether the table exists and has a commit."""
        return self.record is not None or (
            self.hudi.exists() and self.hudi.existing_timeline().last_instant is not None
        )

    def columns(self) -> Columns | None:
        """Return the columns of the stored rows, or None if there is no commit."""
        return stored_columns(self.hudi.read().schema) if self.has_rows() else None

    def become(
        self, rows: DataFrame, record: Record, topic: str, events: int, changed: DataFrame | None = None
    ) -> Committed | None:
        """Write what is needed so that the table has exactly these rows. Return None if it has them.

        `changed`: the difference, if it is known. If the columns are others than before, one commit replaces
        all files."""
        record = replace(record, buckets=self.hudi.policy.buckets)
        stored = self.columns()
        now = columns_of(rows)
        if stored is not None and not stored.is_same(now):
            begun = time.monotonic()
            if rows.isEmpty():
                # Hudi replaces nothing by nothing. The columns change with the next rows.
                before = without_hudi(self.hudi.read())
                gone = deletes(before, rows, record.number, before.schema)
                return self.write(gone, record, topic, events)
            retyped = now.retyped_since(stored)
            self.hudi.replace_all(rows, commit_metadata(record, topic, events, 0, retyped))
            return self._committed(record, events, rows.count(), 0, begun)
        if changed is None:
            changed = rows if stored is None else difference(rows, self.hudi.read(), record.number)
        return self.write(changed, record, topic, events, is_first=stored is None)

    def write(
        self, changed: DataFrame, record: Record, topic: str, events: int, *, is_first: bool = False
    ) -> Committed | None:
        """Write changed rows and deletes in one commit. Return None if there are none.

        The first commit is written even without rows, so that the table exists."""
        begun = time.monotonic()
        record = replace(record, buckets=self.hudi.policy.buckets)
        changed = changed.persist()
        try:
            is_delete = (F.col(OPERATION) == DELETE_MARKER).cast("int")
            counted = changed.agg(F.count("*").alias("rows"), F.sum(is_delete).alias("deletes")).first()
            assert counted is not None, "an aggregate has one row"
            count, deletes = counted["rows"], counted["deletes"] or 0
            if count == 0 and not is_first:
                return None
            spread = FewRows() if count < _FEW else ManyRows(count)
            self.hudi.write(changed, commit_metadata(record, topic, events, deletes), spread)
        finally:
            changed.unpersist()
        return self._committed(record, events, count - deletes, deletes, begun)

    def serve(self) -> None:
        """Run the table services that are due."""
        while self.record is not None and self.services.are_due(is_idle=True):
            self.services.run_due()

    def _committed(self, record: Record, events: int, rows: int, deletes: int, begun: float) -> Committed:
        self.record = record
        self.services.commits += 1
        return Committed(
            table=str(self.name),
            instant=str(self.hudi.existing_timeline().last_instant),
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            events=events,
            rows=rows,
            deletes=deletes,
            quarantined=0,
            positions={},
            freshness_ms=None,
            seconds=round(time.monotonic() - begun, 3),
        )
