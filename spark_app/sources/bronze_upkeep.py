"""Changes of bronze while its writer keeps appending to it: blanked events, removed events, fewer files.

Each change is a commit of Iceberg's. A writer keeps its position in the snapshots that it commits, and could
commit the same events twice without it:

- The sink needs the offsets of its control topic that its last snapshot holds
  (`org.apache.iceberg.connect.channel.Coordinator#lastCommittedOffsetsForTable`).
- The app needs the places in a stream of items (`sources.kinesis.landing`).

So the snapshots from the writer's last one on are kept, or a new one repeats the position.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.sources.kinesis.landing import PLACES_KEY
from tributary.contract.errors import TributaryError

CONTENT = ("key", "value", "moved_to", "moved_from")
"""The columns with an event's content."""

POSITIONS = ("kafka.connect.offsets.", PLACES_KEY)
"""The beginnings of the snapshots' properties in which a writer keeps its position."""

_MARK = "tributary.repeats-a-position"
"""The property of a snapshot that repeats the writer's position. Each one has another value."""

SMALL_FILES = 5
"""Files of a topic are merged once there are this many small ones."""

_METADATA_KEPT = "write.metadata.previous-versions-max"
_METADATA_REMOVED = "write.metadata.delete-after-commit.enabled"

_ATTEMPTS = 5
_SECONDS_BETWEEN_ATTEMPTS = 3.0
_CONFLICTS = ("ValidationException", "CommitFailedException")

# Otherwise, a change of a topic's events fails if the sink has appended others meanwhile.
_ISOLATION = {f"write.{kind}.isolation-level": "snapshot" for kind in ("update", "delete")}


class WriterIsTooFast(TributaryError):
    """Bronze could not be changed between two commits of its writer."""


@dataclass(frozen=True)
class BronzeUpkeep:
    """Changes the Iceberg table with the full name `table`, which exists."""

    spark: SparkSession
    table: str

    def events(self, topic: str) -> DataFrame:
        """Return all events of the topic, also blank ones."""
        self.spark.catalog.refreshTable(self.table)
        return self.spark.read.table(self.table).where(F.col("k_topic") == topic)

    def blank(self, topic: str, where: str, content: Sequence[str] = CONTENT) -> None:
        """Remove the content of events, and keep their offsets, so that none of them seems to be lost.

        where    a condition of SQL
        content  the columns to empty. Without `CONTENT`, an event looks like a tombstone without a key
        """
        columns = [name for name in content if name in self.spark.read.table(self.table).columns]
        values = ", ".join(f"{name} = NULL" for name in columns)
        self._change(f"UPDATE {self.table} SET {values} WHERE k_topic = {_literal(topic)} AND ({where})")

    def remove_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Remove the events of each partition before an offset."""
        ranges = " OR ".join(
            f"(k_partition = {partition} AND k_offset < {offset})"
            for partition, offset in sorted(offsets.items())
        )
        if ranges:
            self._change(f"DELETE FROM {self.table} WHERE k_topic = {_literal(topic)} AND ({ranges})")

    def delete(self, topic: str) -> None:
        """Remove all events of the topic."""
        self._change(f"DELETE FROM {self.table} WHERE k_topic = {_literal(topic)}")

    def merge_small_files(self) -> int:
        """Merge small files into larger ones. Return how many files were merged."""
        result = (
            self._actions.rewriteDataFiles(self._iceberg)
            .option("min-input-files", str(SMALL_FILES))
            .option("partial-progress.enabled", "false")
            .execute()
        )
        return int(result.rewrittenDataFilesCount())

    def expire_snapshots(self) -> int:
        """Remove snapshots that nobody needs, and the files that only they have. Return how many there were.

        The snapshots from the writer's last one on stay.
        """
        table = self._iceberg
        return _expire(table, {int(snapshot.snapshotId()) for snapshot in _since_the_writers_last(table)})

    def expire_all_snapshots_but_one(self) -> None:
        """Remove all earlier snapshots and their files, so that bronze holds nothing of what was blanked."""
        table = self._iceberg
        if position := _position_in_chain(table.currentSnapshot(), table):
            self._repeat(position)
        table = self._iceberg
        if (current := table.currentSnapshot()) is not None:
            _expire(table, {int(current.snapshotId())})

    def _repeat(self, position: Mapping[str, str]) -> None:
        """Commit a snapshot that repeats the writer's position. Raises `WriterIsTooFast`."""
        own: set[str] = set()
        for _ in range(_ATTEMPTS):
            mark = uuid4().hex
            own.add(mark)
            append = self._iceberg.newAppend().set(_MARK, mark)
            for name, value in position.items():
                append = append.set(name, value)
            append.commit()
            table = self._iceberg
            snapshots = _back_from(table.currentSnapshot(), table)
            before = next(snapshot for snapshot in snapshots if dict(snapshot.summary()).get(_MARK) == mark)
            # The writer may have committed between. Then the snapshot repeats a position that it has left.
            there = _position_in_chain(before, table, own)
            if there == position:
                return
            position = there
        raise WriterIsTooFast(
            "The writer of bronze committed again each time that its position was repeated",
            where=self.table,
            remedy="Run the command again.",
        )

    def remove_earlier_metadata(self) -> None:
        """Remove the files that described the table earlier. They hold the summaries of expired snapshots."""
        before = self._iceberg.properties().get(_METADATA_KEPT)
        # Each commit removes what is too much. The second one removes the file from before the first one.
        for kept in ("1", before):
            update = self._iceberg.updateProperties().set(_METADATA_REMOVED, "true")
            update = update.remove(_METADATA_KEPT) if kept is None else update.set(_METADATA_KEPT, kept)
            update.commit()

    def remove_orphans(self, older_than: timedelta) -> int:
        """Remove files of no snapshot, which a failed commit has left. Return how many there were.

        A file that is still being written belongs to no snapshot, either.
        """
        before = int((time.time() - older_than.total_seconds()) * 1000)
        found = self._actions.deleteOrphanFiles(self._iceberg).olderThan(before).execute()
        return sum(1 for _ in found.orphanFileLocations())

    def _change(self, statement: str) -> None:
        """Run a statement that changes rows, again if another commit came between."""
        self._set_isolation()
        for attempt in range(1, _ATTEMPTS + 1):
            self.spark.catalog.refreshTable(self.table)
            try:
                self.spark.sql(statement)
                return
            except (Py4JJavaError, PySparkException) as error:
                if attempt == _ATTEMPTS or not any(name in str(error) for name in _CONFLICTS):
                    raise
                time.sleep(_SECONDS_BETWEEN_ATTEMPTS)

    def _set_isolation(self) -> None:
        properties = self._iceberg.properties()
        missing = {name: value for name, value in _ISOLATION.items() if properties.get(name) != value}
        if missing:
            update = self._iceberg.updateProperties()
            for name, value in missing.items():
                update = update.set(name, value)
            update.commit()

    @property
    def _iceberg(self) -> Any:
        """Iceberg's own table, as it is now."""
        self.spark.catalog.refreshTable(self.table)
        return self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, self.table
        )

    @cached_property
    def _actions(self) -> Any:
        return self._jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm


def key_condition(keys: Sequence[Mapping[str, str]], column: str = "key") -> str:
    """Return the condition of SQL that a column of JSON has one of these keys, or a header that names a key.

    The keys have the same columns. They are compared with the text of the JSON's values."""
    wanted = ", ".join(_literal(text_of_key(key)) for key in keys)
    document = f"decode({column}, 'UTF-8')"
    return f"{text_of_document(tuple(keys[0]), document)} IN ({wanted})"


def text_of_key(key: Mapping[str, str]) -> str:
    """Return a text that no other key has."""
    return "".join(f"{len(value)}:{value}" for value in key.values())


def text_of_document(names: Sequence[str], text: str) -> str:
    """Return `text_of_key` of JSON in SQL; null if that is no such key."""
    values = [
        f"coalesce(get_json_object({text}, {_literal(f'$.payload.{name}')}), "
        f"get_json_object({text}, {_literal(f'$.{name}')}))"
        for name in names
    ]
    parts = [f"char_length({value}), ':', {value}" for value in values]
    return f"concat({', '.join(parts)})"


def places_condition(
    places: Iterable[tuple[int, int]], partition_column: str = "k_partition", offset_column: str = "k_offset"
) -> str:
    """Return the condition of SQL that an event is at one of these partitions and offsets."""
    by_partition: dict[int, list[int]] = {}
    for partition, offset in sorted(places):
        by_partition.setdefault(partition, []).append(offset)
    conditions = [
        f"({partition_column} = {partition} AND {offset_column} IN ({', '.join(map(str, offsets))}))"
        for partition, offsets in by_partition.items()
    ]
    return " OR ".join(conditions) or "false"


def _expire(table: Any, needed: Set[int]) -> int:
    """Remove the other snapshots that this load of the table knows. The writer may have committed since."""
    known = (int(snapshot.snapshotId()) for snapshot in table.snapshots())
    unneeded = [snapshot for snapshot in known if snapshot not in needed]
    if unneeded:
        # Otherwise, Iceberg would also remove others that are older than some days.
        expire = table.expireSnapshots().expireOlderThan(0).cleanExpiredFiles(True)
        for snapshot in unneeded:
            expire = expire.expireSnapshotId(snapshot)
        expire.commit()
    return len(unneeded)


def _back_from(snapshot: Any, table: Any) -> Iterator[Any]:
    """Yield the snapshot, and those before it."""
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)


def _since_the_writers_last(table: Any) -> Iterator[Any]:
    """Yield the snapshots from the current one back to the last one that has the writer's position."""
    for snapshot in _back_from(table.currentSnapshot(), table):
        yield snapshot
        if _position_in(snapshot):
            return


def _position_in_chain(snapshot: Any, table: Any, without: Set[str] = frozenset()) -> Mapping[str, str]:
    """Return the writer's last position up to a snapshot; empty if there is none.

    `without` are the marks of snapshots that only repeat one."""
    for each in _back_from(snapshot, table):
        position = _position_in(each)
        if position and dict(each.summary()).get(_MARK) not in without:
            return position
    return {}


def _position_in(snapshot: Any) -> Mapping[str, str]:
    return {
        str(name): str(value)
        for name, value in dict(snapshot.summary()).items()
        if str(name).startswith(POSITIONS)
    }


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
