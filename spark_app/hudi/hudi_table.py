"""One silver table in Apache Hudi, as the rest of the app uses it. Combines this package's modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.columns.key_parts import with_key_parts, without_key_parts
from spark_app.hudi import cleaning, compaction, recovery, timeline_shortening
from spark_app.hudi.append_writer import AppendWriter
from spark_app.hudi.instants import instant_of
from spark_app.hudi.options import READ_OPTIONS
from spark_app.hudi.reader_limits import hides_nested_times
from spark_app.hudi.spark_writer import SparkWriter
from spark_app.hudi.spread import MANY_ROWS, Spread, tasks_of
from spark_app.hudi.table_access import TableAccess
from spark_app.hudi.table_creation import create_table
from spark_app.hudi.timeline import HudiCommit, Timeline, commits_with, read_timeline
from spark_app.steps.buckets import Buckets
from spark_app.steps.steps import steps
from tributary.contract.lake import TablePolicy
from tributary.contract.partitions import stored_partition


@dataclass(frozen=True)
class StoredAs:
    """What a table's properties say of its layout. `partition_by` has the lake file's entries."""

    storage: str
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class HudiTable:
    """One silver table. `name` is its name in a catalog, `path` its base path.

    While a table service runs, nothing else may write to the table. A commit's metadata are texts under keys
    that the caller chooses."""

    spark: SparkSession
    path: str
    name: str
    policy: TablePolicy

    def exists(self) -> bool:
        return self.access.files.has_table()

    def read(self) -> DataFrame:
        """Return the rows of the latest commit, with Hudi's own columns, without parts of the key."""
        rows = self.spark.read.format("hudi").options(**READ_OPTIONS).load(self.path)
        return without_key_parts(rows, self.policy.key_parts)

    def read_as_of(self, instant: str, spark: SparkSession | None = None) -> DataFrame:
        """Return what `read` would have returned after the commit at the instant.

        `spark` is the session of the query, if it is not the table's."""
        reader = (spark or self.spark).read.format("hudi").options(**READ_OPTIONS)
        rows = reader.option("as.of.instant", instant).load(self.path)
        return without_key_parts(rows, self.policy.key_parts)

    def stored_as(self) -> StoredAs:
        """Return the layout of a table that is known to exist. Its properties are read once."""
        properties = self.access.properties
        fields = properties.get("hoodie.table.partition.fields", "")
        # Hudi may add the kind of a column's values to its name, as in `country:SIMPLE`.
        names = [field.partition(":")[0] for field in fields.split(",") if field]
        partition_by = tuple(str(stored_partition(name)) for name in names)
        return StoredAs(properties["hoodie.table.type"].lower(), partition_by)

    def timeline(self) -> Timeline:
        """Read the timeline. If there is no table, return a timeline without commits."""
        # If there is no table, Hudi would look for one five times, a second apart.
        return self.existing_timeline() if self.exists() else Timeline(self.policy.storage)

    def existing_timeline(self) -> Timeline:
        """Read the timeline of a table that is known to exist."""
        return read_timeline(self.access)

    def commits_with(
        self, key: str, timeline: Timeline, known: Set[str] = frozenset()
    ) -> Iterator[HudiCommit]:
        """Read the commits whose metadata has the key, the last one first, except the `known` instants."""
        return commits_with(key, self.access, timeline, known)

    def partitions(self) -> frozenset[str]:
        """Return the paths of all partitions by listing folders; none for an unpartitioned table."""
        return self.access.partitions()

    def write(self, rows: DataFrame, metadata: Mapping[str, str], spread: Spread = MANY_ROWS) -> None:
        """Upsert the rows in one commit, and create the table if there is none.

        There is one row per key. A row whose `_op` is the delete marker deletes its key. Each write adds the
        parts of the key by which the table is partitioned."""
        if not self.exists():
            create_table(self.access)
        is_first = self.policy.storage == "copy_on_write" and not self.existing_timeline().instants
        if is_first and self._append_writer is not None:
            # No bucket has a base file yet, so Hudi would not have to rewrite any.
            self._append_writer.write(self._partitioned(rows), metadata, spread)
        else:
            self.upsert(rows, metadata, spread)

    def upsert(self, rows: DataFrame, metadata: Mapping[str, str], spread: Spread = MANY_ROWS) -> None:
        """Do the same as `write` in a table that is known to have a commit, without checking this first.

        Log files that hudi-rs cannot read are compacted at once. Raises `StorageClockIsBehind` then."""
        if self.policy.storage == "copy_on_write" or self._append_writer is None:
            SparkWriter(self.access).upsert(self._partitioned(rows), metadata, spread)
        else:
            self._append_writer.write(self._partitioned(rows), metadata, spread)
        if self.policy.storage == "merge_on_read" and hides_nested_times(rows.schema):
            self.compact()

    def replace_all(self, rows: DataFrame, metadata: Mapping[str, str]) -> None:
        """Replace all of the table's rows by these rows, with their columns' types, in one commit.

        Readers see the earlier rows until then, and later by time travel."""
        SparkWriter(self.access).replace_all(self._partitioned(rows), metadata)

    def buckets(self, events: int) -> Buckets | None:
        """Return the buckets by which this many events can be sent to the tasks that write their rows.

        Returns None in three cases: a row's file group depends on more than its bucket; the events would go
        to fewer tasks than can work; or Hudi's own writer writes the rows."""
        least, wanted = tasks_of(self.spark, 0), tasks_of(self.spark, events)
        tasks = min(wanted, self.policy.buckets)
        if self.policy.storage != "merge_on_read" or self.policy.partition_by or tasks < least:
            return None
        return steps().buckets(self.spark, RECORD_KEY, self.policy.buckets, tasks)

    def compact(self) -> None:
        """Merge all log files into base files. Raises `StorageClockIsBehind`."""
        begun = instant_of(datetime.now(UTC))
        while self.compact_part(begun):
            pass

    def compact_part(self, begun: str) -> bool:
        """Merge some log files. Return whether base files older than `begun` are left to merge into.

        Raises `StorageClockIsBehind`."""
        return compaction.compact_part(self.access, begun)

    def finish_compactions(self) -> Timeline:
        """Run a compaction that was left pending, and return the timeline. Raises `StorageClockIsBehind`."""
        return compaction.finish_compactions(self.access)

    def shorten_timeline(self) -> None:
        """Remove the oldest commits from the timeline."""
        timeline_shortening.shorten_timeline(self.access)

    def clean(self) -> None:
        """Remove the files that no state within the table's history needs."""
        cleaning.clean(self.access)

    def forget_earlier_states(self) -> None:
        """Remove all files that the latest state does not need, also under queries that are running."""
        cleaning.clean(self.access, oldest=self.existing_timeline().last_instant)

    def remove_leftovers(self) -> None:
        """Remove files that an ended process left and that make Hudi fail."""
        recovery.remove_leftovers(self.access)

    @cached_property
    def access(self) -> TableAccess:
        """The access to the table that the modules of this package share."""
        return TableAccess(self.spark, self.path, self.name, self.policy)

    def _partitioned(self, rows: DataFrame) -> DataFrame:
        return with_key_parts(rows, self.policy.key_parts)

    @cached_property
    def _append_writer(self) -> AppendWriter | None:
        upsert = steps().row_upsert(self.spark, self.name)
        return None if upsert is None else AppendWriter(self.access, upsert)
