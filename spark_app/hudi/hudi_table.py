"""Apache Hudi: the one module that knows its options, its classes and its timeline."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import accumulate, chain, islice, takewhile
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType

from spark_app.columns.table_columns import OPERATION, ORDERING, RECORD_KEY
from spark_app.hudi.file_removal import remove_files, remove_files_in_order
from spark_app.hudi.file_slices import FileGroup, LogMerge, log_merges, outdated_files, partition_of
from spark_app.hudi.instants import CompletedInstant, parse_completed_instants
from spark_app.hudi.timeline_files import removal_of_oldest_instants
from spark_app.jvm.buckets import Buckets
from spark_app.ledger.ledger import LEDGER_KEY, RETYPED_KEY, Ledger
from spark_app.wire.decode import DELETE
from tributary.contract.lake import Storage, TablePolicy

_CALENDAR_OPTIONS = {
    # Dates before 1582 as they are, not as the hybrid calendar of old Hive readers had them.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # Hudi's files do not say which calendar they were written in: Spark would fail at dates before 1582.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
}
SESSION_OPTIONS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # Arrays with a null element cannot be written in Parquet's old list structure.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    **_CALENDAR_OPTIONS,
}
"""What a Spark session needs before it writes a Hudi table."""

ACTIVE_COMMITS = 20
"""How many a shortened timeline has. Every commit lists it eight times, with three files a commit."""

_MOST_COMMITS_AFTER_A_REPLACEMENT = 1_000
"""While the files are there that a commit has replaced, it stays in the timeline, with all after it."""

_SECONDS_S3_MAY_BE_BEHIND = 10
_PART_MEGABYTES = 64
_MEGABYTES = "TOTAL_IO_MB"
"""What a compaction reads and writes of a file group, among the metrics of its plan (CompactionStrategy)."""

_PROPERTIES = "hoodie.properties"

_CLEANING_THREADS = 16
_MOST_MERGES = 4 * _CLEANING_THREADS
_COPY_BYTES = 1 << 16
_INSTANT = "%Y%m%d%H%M%S%f"
_CLEAN_PLAN_VERSION = 2
_LISTED_NAME = re.compile(r"^StoragePathInfo\{path=.*/([^/,]+),.*$", re.MULTILINE)


class StorageClockIsBehind(OSError):
    """By the storage's clock a compaction has completed before, by the clock here, it was requested."""


@dataclass(frozen=True)
class HudiCommit:
    """A completed commit of a table: its instant, as Hudi names it, its ledger, and the rows it wrote.

    `partitions` are the paths, in the table, of those that it wrote to; empty in a table without any."""

    instant: str
    ledger: Ledger
    rows_upserted: int
    rows_deleted: int
    partitions: frozenset[str]


@dataclass(frozen=True)
class Timeline:
    """The completed commits, compactions included, of a table's active timeline, as they were when it was
    read. `instants` come in the order in which they were requested; `of_hudi` has the same."""

    storage: Storage
    instants: tuple[CompletedInstant, ...] = ()
    of_hudi: Any = None

    @property
    def commits(self) -> tuple[CompletedInstant, ...]:
        """Those that are no compaction."""
        return tuple(i for i in self.instants if i.action != "commit" or self.storage != "merge_on_read")

    @property
    def requested(self) -> frozenset[str]:
        """The names of the commits."""
        return frozenset(commit.requested for commit in self.commits)

    @property
    def early_compactions(self) -> tuple[CompletedInstant, ...]:
        """Those that have, by their times, completed before they were requested."""
        compactions = set(self.instants).difference(self.commits)
        return tuple(sorted(i for i in compactions if i.completed < i.requested))

    @property
    def last_instant(self) -> str | None:
        """The one that was requested last, a compaction or not; None where there is none."""
        return self.instants[-1].requested if self.instants else None

    def first_after_replacement(self, before: str, commits: int) -> str | None:
        """The instant that followed on the last one that has replaced files, of those that were requested
        before the instant and have more than so many after them; None where there is no such."""
        old = self.instants[: max(0, len(self.instants) - commits - 1)]
        replacements = [n for n, i in enumerate(old) if i.action == "replacecommit" and i.requested < before]
        return self.instants[replacements[-1] + 1].requested if replacements else None

    @property
    def commits_since_services(self) -> int:
        """How many a merge-on-read table has had since its last compaction, a copy-on-write one since its
        timeline was shortened."""
        if self.storage == "copy_on_write":
            return max(0, len(self.instants) - ACTIVE_COMMITS)
        return len(list(takewhile(lambda instant: instant.action == "deltacommit", reversed(self.instants))))


@dataclass(frozen=True)
class _Java:
    """Classes and objects of the JVM. To find a class by its name takes it some milliseconds."""

    path: Any
    meta_client: Any
    timeline_utils: Any
    compaction_utils: Any
    clustering_utils: Any
    cleaning_policy: Any
    fs_utils: Any
    storage_path: Any
    local_context: Any
    data_source_utils: Any
    time_zone: Any
    strings: Any
    io_utils: Any
    clean_plan: Any
    clean_file: Any
    action_instant: Any
    option: Any
    operation_type: Any
    row_upsert: Any
    buckets: Any
    hadoop_conf: JavaObject
    storage_conf: JavaObject


@dataclass(frozen=True)
class HudiTable:
    """One silver table. `name` is its name in a catalog, `path` its base path."""

    spark: SparkSession
    path: str
    name: str
    policy: TablePolicy

    def exists(self) -> bool:
        # Hudi replaces the properties by writing the backup, removing them, and writing them.
        return self._has_file(_PROPERTIES) or self._has_file(f"{_PROPERTIES}.backup")

    def schema(self) -> StructType:
        """The table's schema, Hudi's own columns included."""
        return self.read().schema

    def read(self) -> DataFrame:
        """The rows of the latest commit."""
        return self.spark.read.format("hudi").options(**_READ_OPTIONS).load(self.path)

    def timeline(self, *, is_there: bool = False) -> Timeline:
        """Of no commit where there is no table. `is_there`: that there is one is known, and not asked."""
        if not is_there and not self.exists():
            # Hudi would look for one five times, a second apart.
            return Timeline(self.policy.storage)
        timeline = self._kept_meta_client.reloadActiveTimeline()
        completed = timeline.getCommitsTimeline().filterCompletedInstants()
        texts = self._java.strings.join("\n", completed.getInstants()).splitlines()
        return Timeline(self.policy.storage, parse_completed_instants(texts), completed)

    def last_commit(self) -> HudiCommit | None:
        """Of those that hold a ledger the one that was completed last."""
        return next(self.commits(self.timeline()), None)

    def commits(self, timeline: Timeline, known: Set[str] = frozenset()) -> Iterator[HudiCommit]:
        """Those of the timeline that hold a ledger, but for the instants that are known. The one that was
        completed last comes first."""
        for instant in sorted(timeline.commits, reverse=True):
            if instant.requested in known:
                continue
            of_hudi = timeline.of_hudi.getInstants().get(timeline.instants.index(instant))
            metadata = self._java.timeline_utils.getCommitMetadata(of_hudi, timeline.of_hudi)
            ledger = metadata.getMetadata(LEDGER_KEY)
            if ledger is not None:
                yield HudiCommit(
                    instant=instant.requested,
                    ledger=Ledger.from_json(ledger),
                    rows_upserted=metadata.fetchTotalInsertRecordsWritten()
                    + metadata.fetchTotalUpdateRecordsWritten(),
                    rows_deleted=metadata.getTotalRecordsDeleted(),
                    partitions=frozenset(metadata.getPartitionToWriteStats().keySet())
                    if self.policy.partition_by
                    else frozenset(),
                )

    def partitions(self) -> frozenset[str]:
        """The paths of all partitions in the table; empty where it has none. Lists the table's folders."""
        if not self.policy.partition_by:
            return frozenset()
        client, java = self._meta_client(), self._java
        context = java.local_context(java.storage_conf)
        storage, base_path = client.getStorage(), client.getBasePath()
        return frozenset(java.fs_utils.getAllPartitionPaths(context, storage, base_path, False))

    def compact(self) -> None:
        """Merges all log files into base files. No commit may be written meanwhile. Raises
        `StorageClockIsBehind`."""
        begun = instant_of(datetime.now(UTC))
        while self.compact_part(begun):
            pass

    def compact_part(self, begun: str) -> bool:
        """Merges the log files of some file groups into base files; whether there are others whose base files
        are older than the instant. No commit may be written meanwhile, but before the next part. Raises
        `StorageClockIsBehind`.

        The compaction of a large table takes minutes, in which it would get no commit, and each task of it
        seconds, for which other tables would get no core if all had one."""
        instant = self._schedule_compaction()
        if instant is None:
            return False
        is_more = self._leave_a_part_of_compaction(instant, begun)
        self._run_compaction(instant)
        self._complete_compactions_late_enough()
        return is_more

    def finish_compactions(self) -> Timeline:
        """Runs what a crash has left scheduled: readers other than Spark do not see the commits after it. The
        timeline as it is then. Raises `StorageClockIsBehind`."""
        pending = self._meta_client().getActiveTimeline().filterPendingCompactionTimeline().firstInstant()
        if pending.isPresent():
            self._run_compaction(pending.get().requestedTime())
        return self._complete_compactions_late_enough()

    def remove_what_an_end_left(self) -> None:
        """Removes what the end of a process can leave behind, and of which some has Hudi fail at each start.

        A folder `.hoodie` without a file is a table to Hudi, whose properties it cannot read. And where the
        rollback of a commit was interrupted, Hudi repeats it, and looks for the log files that its markers
        name in the local file system (RollbackHelperV1#addMissingLogFilesAndGetRollbackStats, DEFAULT_URI of
        HoodieStorageUtils). Without the markers it looks for none; they are for its metadata table only.
        Those of pending commits are needed to roll them back. Of completed ones they are merely left.
        """
        files, folder = self._file_system(), self._path(".hoodie")
        if not self.exists():
            if files.exists(folder) and not files.listFiles(folder, True).hasNext():
                files.delete(folder, True)
            return
        temporary = ".hoodie/.temp"
        if files.exists(self._path(temporary)):
            client = self._meta_client()
            pending = client.getActiveTimeline().getWriteTimeline().filterInflightsAndRequested()
            needed = {instant.requestedTime() for instant in pending.getInstants()}
            for name in self._names_in(client.getStorage(), f"{self.path}/{temporary}"):
                if name not in needed:
                    files.delete(self._path(f"{temporary}/{name}"), True)

    def shorten_timeline(self) -> None:
        """Removes the oldest commits from the timeline, all but the last `ACTIVE_COMMITS`; states are read as
        ever. No commit may be written meanwhile.

        Hudi's archival would write them to an archive first, which nothing here reads. For each file that is
        eight requests to S3, one after the other."""
        client, stays_from = self._meta_client(), None
        names = self._names_in(client.getStorage(), f"{self.path}/.hoodie")
        if any(".replacecommit" in name for name in names):
            # Without the commit in the timeline, the files that it has replaced count as the table's.
            clustering = self._java.clustering_utils
            replacing = clustering.getEarliestInstantToRetainForClustering(
                client.getActiveTimeline(), client, self._java.cleaning_policy.KEEP_LATEST_BY_HOURS
            )
            stays_from = replacing.get().requestedTime() if replacing.isPresent() else None
        removal = removal_of_oldest_instants(names, ACTIVE_COMMITS, stays_from)
        remove_files(self.spark, f"{self.path}/.hoodie", removal.earlier_states)
        remove_files_in_order(self.spark, f"{self.path}/.hoodie", removal.completed)

    def clean(self) -> None:
        """Removes the files that only states before `history` are read from, and has the timeline say so;
        after many commits also those that one of them has replaced. Of file slices that were superseded long
        ago it puts the log files together, into one a slice.

        Hudi's cleaner goes by the commits in the active timeline: it needs all of the history there, where
        every commit lists them. Each commit lists the table's files, too, which log files are most of.
        """
        now = datetime.now(UTC)
        settled = instant_of(now - self.policy.longest_query)
        oldest = min(settled, instant_of(now - self.policy.history))
        meta_client = self._meta_client()
        timeline, storage = meta_client.getActiveTimeline(), meta_client.getStorage()
        if not timeline.getWriteTimeline().filterInflightsAndRequested().empty():
            # Its files would be taken for a state of the table. The next commit removes them.
            return
        replaced = self.timeline().first_after_replacement(settled, _MOST_COMMITS_AFTER_A_REPLACEMENT)
        oldest = max(filter(None, (oldest, replaced)))
        with ThreadPoolExecutor(_CLEANING_THREADS, thread_name_prefix="clean") as threads:
            listings = threads.map(partial(self._files_in, storage), self.partitions() or {""})
            files = frozenset(chain.from_iterable(listings))
            outdated = outdated_files(files, oldest, self._replaced_before(timeline, oldest))
            # Hudi would remove a partition's one by one. It gets one: its plan cannot be without.
            recorded = {partition_of(file): file for file in outdated}
            remove_files(self.spark, self.path, set(outdated) - set(recorded.values()))
            # Incremental queries of commits in the active timeline open the files that these have written.
            first = timeline.getWriteTimeline().firstInstant()
            if first.isPresent():
                merges = log_merges(files.difference(outdated), min(settled, first.get().requestedTime()))
                merged = threads.map(self._merge_log_files, islice(merges, _MOST_MERGES))
                remove_files(self.spark, self.path, list(chain.from_iterable(merged)))
        # A commit that replaced files stays in the timeline until they are cleaned: this comes last.
        if recorded:
            self._record_cleaning(timeline, oldest, recorded)

    def write(
        self,
        rows: DataFrame,
        ledger: Ledger,
        *,
        are_few: bool = False,
        is_there: bool = False,
        are_in_buckets: bool = False,
    ) -> None:
        """One commit that upserts the rows, one a key, deletes those whose `_op` says so, and records the
        ledger. Where there is no table yet, it is made.

        `are_few`: they are a task's work for each bucket, and no more than one's until then. `is_there`: that
        there is a table, which has a commit, is known. `are_in_buckets`: they are in the tasks of the table's
        `buckets`, bucket after bucket."""
        if not is_there and not self.exists():
            self._create()
        if self.policy.storage == "copy_on_write" and (is_there or self.timeline(is_there=True).instants):
            options = {**self._options, **_ONE_ROW_A_KEY_OPTIONS, LEDGER_KEY: ledger.to_json()}
            options |= _FEW_ROWS_OPTIONS if are_few else {}
            rows.write.format("hudi").options(**options).mode("append").save(self.path)
            return
        self._append(rows, ledger, are_few=are_few, are_in_buckets=are_in_buckets)

    def buckets(self, events: int) -> Buckets | None:
        """By which so many can be brought to the tasks that write them, before they are one a key; None
        where more tells a row's file group than its bucket, where fewer tasks would have them than can work,
        and where Hudi's own writer writes them."""
        tasks = min(self._tasks_of(events), self.policy.buckets)
        if self.policy.storage != "merge_on_read" or self.policy.partition_by or tasks < self._tasks_of(0):
            return None
        return Buckets(self._java.buckets(RECORD_KEY, self.policy.buckets, tasks))

    def _tasks_of(self, events: int) -> int:
        return max(int(str(self.spark.conf.get("spark.sql.shuffle.partitions"))), events // _ROWS_OF_A_TASK)

    def _create(self) -> None:
        """A table without a commit, of the properties that Hudi's own writer would give it, and one more."""
        options, java = self._options, self._java
        table = java.meta_client.newTableBuilder()
        table.setTableName(self.name)
        table.setTableType(options["hoodie.datasource.write.table.type"])
        table.setTableVersion(int(options["hoodie.write.table.version"]))
        table.setRecordKeyFields(RECORD_KEY)
        table.setPreCombineField(ORDERING)
        table.setPayloadClassName(options["hoodie.datasource.write.payload.class"])
        table.setKeyGeneratorClassProp(options["hoodie.datasource.write.keygenerator.class"])
        table.setPartitionFields(",".join(self.policy.partition_by))
        table.setHiveStylePartitioningEnable(True)
        table.setUrlEncodePartitioning(True)
        table.setCommitTimezone(java.time_zone.UTC)
        table.setBaseFileFormat("PARQUET")
        table.setArchiveLogFolder("history")
        table.setPartitionMetafileUseBaseFormat(False)
        table.setPopulateMetaFields(True)
        table.setShouldDropPartitionColumns(False)
        table.setCDCEnabled(False)
        # Else each commit looks eight times for the index of a table that was made of other files. It goes by
        # the properties alone.
        table.setBootstrapIndexEnable(False)
        table.initTable(java.storage_conf, self.path)

    def _append(self, rows: DataFrame, ledger: Ledger, *, are_few: bool, are_in_buckets: bool) -> None:
        """One commit of log files, and of base files where a bucket has none yet. One Spark job."""
        meta_client = self._kept_meta_client
        meta_client.reloadActiveTimeline()
        tasks = self.spark.sparkContext.defaultParallelism if are_few else self._tasks_of(ledger.events)
        schema = self._row_upsert.writerSchema(meta_client, rows._jdf)
        with self._client(_FEW_ROWS_OPTIONS if are_few else {}, schema) as client:
            instant = client.startCommit(meta_client.getCommitActionType(), meta_client)
            written = self._row_upsert.write(client, meta_client, instant, rows._jdf, tasks, are_in_buckets)
            self._complete(client, instant, written, ledger)
        self._row_upsert.committed(written)

    def _complete(self, client: Any, instant: str, written: Any, ledger: Ledger) -> None:
        java = self._java
        client.setOperationType(java.operation_type.UPSERT)
        recorded = java.option.of({LEDGER_KEY: ledger.to_json()})
        client.commitStats(instant, written, recorded, self._kept_meta_client.getCommitActionType())

    def replace_all(self, rows: DataFrame, ledger: Ledger, retyped: Sequence[str]) -> None:
        """One commit after which the table has these rows and no other, in these columns' types, and the
        ledger. Until then readers see the rows that it had, and by time travel also later. `retyped`: the
        columns that had another type until then."""
        recorded = {LEDGER_KEY: ledger.to_json(), RETYPED_KEY: json.dumps(retyped)}
        options = {**self._options, **_REPLACING_OPTIONS, **recorded}
        rows.write.format("hudi").options(**options).mode("append").save(self.path)

    def _files_in(self, storage: Any, partition: str) -> list[str]:
        """What is in the partition's folder, by path in the table."""
        names = self._names_in(storage, f"{self.path}/{partition}".rstrip("/"))
        return [f"{partition}/{name}".lstrip("/") for name in names]

    def _names_in(self, storage: Any, folder: str) -> list[str]:
        entries = storage.listDirectEntries(self._java.storage_path(folder))
        # One text of all: to ask for each name takes longer than to list them.
        return _LISTED_NAME.findall(self._java.strings.join("\n", entries))

    def _merge_log_files(self, merge: LogMerge) -> Sequence[str]:
        """The files that are to go, now that the merged one is there.

        A log file is a row of blocks, each with its commit's instant, and may hold those of many commits: so
        Hudi writes them to where files can be appended to."""
        if not merge.is_written:
            files, draft = self._file_system(), f".hoodie/.temp/{merge.merged}"
            with self._created(draft) as output:
                for name in merge.log_files:
                    log_file = files.open(self._path(name))
                    try:
                        self._java.io_utils.copyBytes(log_file, output, _COPY_BYTES, False)
                    finally:
                        log_file.close()
            # There is no name at which readers could find a part of it.
            if not files.rename(self._path(draft), self._path(merge.merged)):
                raise OSError(f"{draft} in {self.path} cannot be renamed to {merge.merged}")
        return merge.log_files

    def _replaced_before(self, timeline: Any, instant: str) -> frozenset[FileGroup]:
        """The file groups that commits up to the instant have replaced, of those that the timeline has."""
        replacing = timeline.getCompletedReplaceTimeline().findInstantsBeforeOrEquals(instant)
        return frozenset(
            FileGroup(partition, file_id)
            for commit in replacing.getInstants()
            for partition, file_ids in self._java.timeline_utils.getCommitMetadata(commit, timeline)
            .getPartitionToReplaceFileIds()
            .items()
            for file_id in file_ids
        )

    def _record_cleaning(self, timeline: Any, oldest: str, files: Mapping[str, str]) -> None:
        """A clean instant that removes the files, one a partition, and says from when on all states are
        whole."""
        java, last = self._java, timeline.getCommitsTimeline().filterCompletedInstants().lastInstant()
        removed = {
            partition: [java.clean_file(f"{self.path}/{file}", False)] for partition, file in files.items()
        }
        plan = java.clean_plan(
            java.action_instant(oldest, "commit", "COMPLETED"),
            last.get().requestedTime(),
            "KEEP_LATEST_BY_HOURS",
            {},
            _CLEAN_PLAN_VERSION,
            removed,
            [],
            {},
        )
        with self._client({}) as client:
            instant = client.createNewInstantTime()
            requested = self._meta_client().getInstantGenerator().getCleanRequestedInstant(instant)
            timeline.saveToCleanRequested(requested, java.option.of(plan))
            client.clean(instant, False)

    @contextmanager
    def _client(self, options: Mapping[str, str], schema: str = "") -> Iterator[Any]:
        """Hudi's writer, with options beside the table's own: for a service, or for rows of an Avro
        schema."""
        spark_context: Any = self.spark.sparkContext
        client = self._java.data_source_utils.createHoodieClient(
            spark_context._jsc, schema, self.path, self.name, {**self._options, **options}
        )
        try:
            yield client
        finally:
            client.close()

    def _has_file(self, name: str) -> bool:
        return bool(self._file_system().exists(self._path(f".hoodie/{name}")))

    def _path(self, name: str) -> Any:
        """Hadoop's, of what has that path in the table."""
        return self._java.path(f"{self.path}/{name}")

    def _file_system(self) -> Any:
        return self._java.path(self.path).getFileSystem(self._java.hadoop_conf)

    def _schedule_compaction(self) -> str | None:
        """The instant that it will have; None where there is nothing to compact."""
        with self._client(self._compaction_options) as client:
            scheduled = client.scheduleCompaction(self._java.option.empty())
            return str(scheduled.get()) if scheduled.isPresent() else None

    def _leave_a_part_of_compaction(self, instant: str, begun: str) -> bool:
        """Takes out of the scheduled compaction's plan what is not for its part; whether something else is
        left that has base files older than `begun`."""
        client = self._meta_client()
        plan = self._java.compaction_utils.getCompactionPlan(client, instant)
        operations = [plan.getOperations().get(n) for n in range(plan.getOperations().size())]
        newer = [operation for operation in operations if operation.getBaseInstantTime() >= begun]
        older = [operation for operation in operations if operation.getBaseInstantTime() < begun]
        megabytes = [operation.getMetrics()[_MEGABYTES] for operation in older]
        count = operations_of_part(megabytes, self.spark.sparkContext.defaultParallelism)
        if 0 < count < len(operations):
            plan.setOperations(older[:count])
            # Else the next plan would be for those partitions alone that have had commits since.
            others = {operation.getPartitionPath() for operation in [*older[count:], *newer]}
            plan.setMissingSchedulePartitions(sorted(others))
            requested = client.getInstantGenerator().getCompactionRequestedInstant(instant)
            client.getActiveTimeline().saveToCompactionRequested(requested, plan, True)
        return count < len(older)

    def _run_compaction(self, instant: str) -> None:
        for name, value in _CALENDAR_OPTIONS.items():
            # Of the session's settings Spark sends those of a query to its tasks. This is none.
            self.spark.sparkContext.setLocalProperty(name, value)
        with self._client(self._compaction_options) as client:
            client.compact(instant)

    def _complete_compactions_late_enough(self) -> Timeline:
        """Completes those again that have done so before they were requested. The timeline as it is then.

        In table version 6 an instant's completion time is its timeline file's modification time, which S3
        gives by its own clock and in whole seconds. The log files after a compaction have its instant in
        their names, and are counted to the file slice before it, and their rows never read, where it has
        completed before that instant (HoodieFileGroup#getBaseInstantTime,
        CompletionTimeQueryViewV1#getCompletionTime). The file is written anew, then, in a later second: what
        it was too early for is read again.
        """
        timeline = self.timeline()
        for _ in range(_SECONDS_S3_MAY_BE_BEHIND):
            if not timeline.early_compactions:
                return timeline
            time.sleep(1)
            for compaction in timeline.early_compactions:
                of_hudi = timeline.of_hudi.getInstants().get(timeline.instants.index(compaction))
                self._write_timeline_file(
                    f"{compaction.requested}.commit", timeline.of_hudi.getInstantDetails(of_hudi).get()
                )
            timeline = self.timeline()
        if timeline.early_compactions:
            early = timeline.early_compactions[0]
            raise StorageClockIsBehind(
                f"{self.path} was compacted at {early.requested} by the clock here and, by that of its "
                f"storage, at {early.completed} (UTC): set both right, or wait until the latter is past the "
                "former"
            )
        return timeline

    def _write_timeline_file(self, name: str, content: bytes) -> None:
        with self._created(f".hoodie/{name}") as output:
            output.write(content)

    @contextmanager
    def _created(self, name: str) -> Iterator[Any]:
        """A stream into the file of that path in the table, over what it was."""
        output = self._file_system().create(self._path(name), True)
        try:
            yield output
        finally:
            output.close()

    def _meta_client(self) -> Any:
        builder = self._java.meta_client.builder()
        return builder.setConf(self._java.storage_conf).setBasePath(self.path).build()

    @cached_property
    def _kept_meta_client(self) -> Any:
        """To list the timeline again it needs not read the table's properties again."""
        return self._meta_client()

    @cached_property
    def _row_upsert(self) -> Any:
        """It knows what the last commit from here has left."""
        return self._java.row_upsert(self.name)

    @cached_property
    def _options(self) -> Mapping[str, str]:
        return _write_options(self.name, self.policy)

    @cached_property
    def _compaction_options(self) -> Mapping[str, str]:
        # Hudi reads from each commit which partitions it was in: two requests, to save two a partition.
        is_incremental = str(bool(self.policy.partition_by)).lower()
        return {**_COMPACTION_OPTIONS, "hoodie.table.services.incremental.enabled": is_incremental}

    @cached_property
    def _java(self) -> _Java:
        jvm: Any = self.spark._jvm
        hadoop_conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        hudi = jvm.org.apache.hudi
        return _Java(
            path=jvm.org.apache.hadoop.fs.Path,
            meta_client=hudi.common.table.HoodieTableMetaClient,
            timeline_utils=hudi.common.table.timeline.TimelineUtils,
            compaction_utils=hudi.common.util.CompactionUtils,
            clustering_utils=hudi.common.util.ClusteringUtils,
            cleaning_policy=hudi.common.model.HoodieCleaningPolicy,
            fs_utils=hudi.common.fs.FSUtils,
            storage_path=hudi.storage.StoragePath,
            local_context=hudi.common.engine.HoodieLocalEngineContext,
            data_source_utils=hudi.DataSourceUtils,
            time_zone=hudi.common.model.HoodieTimelineTimeZone,
            strings=jvm.org.apache.hadoop.util.StringUtils,
            io_utils=jvm.org.apache.hadoop.io.IOUtils,
            clean_plan=hudi.avro.model.HoodieCleanerPlan,
            clean_file=hudi.avro.model.HoodieCleanFileInfo,
            action_instant=hudi.avro.model.HoodieActionInstant,
            option=hudi.common.util.Option,
            operation_type=hudi.common.model.WriteOperationType,
            row_upsert=jvm.io.tributary.spark.RowUpsert,
            buckets=jvm.io.tributary.spark.Buckets,
            hadoop_conf=hadoop_conf,
            storage_conf=hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop_conf),
        )


def operations_of_part(megabytes: Sequence[float], cores: int) -> int:
    """How many of a compaction's operations, from the first one on, are one part: those that leave a core to
    others, and more as long as they are small, by what each reads and writes."""
    at_once = max(1, cores - 1)
    small = takewhile(lambda total: total < _PART_MEGABYTES, accumulate(megabytes))
    return min(len(megabytes), max(at_once, len(list(small))))


def has_nested_columns(schema: StructType) -> bool:
    """Whether a column's values hold values."""
    nested = (ArrayType, MapType, StructType)
    return any(isinstance(field.dataType, nested) for field in schema.fields)


def instant_of(moment: datetime) -> str:
    """What Hudi calls an instant that is requested at the moment, which is in UTC."""
    return moment.strftime(_INSTANT)[:17]


def _write_options(name: str, policy: TablePolicy) -> dict[str, str]:
    return {
        "hoodie.table.name": name,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": "6",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.datasource.write.commitmeta.key.prefix": LEDGER_KEY,
        **_key_options(policy),
        **_merge_options(policy),
        **_storage_options(policy),
        **_SMALL_COMMIT_OPTIONS,
        **_LARGE_COMMIT_OPTIONS,
        **_BASE_FILE_OPTIONS,
    }


def _key_options(policy: TablePolicy) -> dict[str, str]:
    """The record key is one string column, whatever the source's key is: Hudi refuses an empty string as a
    key, joins several key columns ambiguously, and renders timestamps and decimals in more than one way."""
    generator = {0: "NonpartitionedKeyGenerator", 1: "SimpleKeyGenerator"}.get(
        len(policy.partition_by), "CustomKeyGenerator"
    )
    fields = (
        policy.partition_by if len(policy.partition_by) < 2 else [f"{c}:SIMPLE" for c in policy.partition_by]
    )
    return {
        "hoodie.datasource.write.recordkey.field": RECORD_KEY,
        "hoodie.datasource.write.partitionpath.field": ",".join(fields),
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(policy.buckets),
        "hoodie.bucket.index.hash.field": RECORD_KEY,
    }


def _merge_options(policy: TablePolicy) -> dict[str, str]:
    options = {
        "hoodie.datasource.write.precombine.field": ORDERING,
        "hoodie.payload.ordering.field": ORDERING,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    if policy.deletes == "hard":
        options |= {"hoodie.payload.delete.field": OPERATION, "hoodie.payload.delete.marker": DELETE}
    return options


def _storage_options(policy: TablePolicy) -> dict[str, str]:
    if policy.storage == "copy_on_write":
        return {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    return {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        # `HudiTable.compact` says why not within a write.
        "hoodie.compact.inline": "false",
        "hoodie.compact.schedule.inline": "false",
    }


_SMALL_COMMIT_OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.datasource.write.row.writer.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""A commit of some thousand rows every second or two: what these leave out costs more than it saves."""

_ONE_ROW_A_KEY_OPTIONS = {
    # Delete blocks, which copy-on-write has none of, would get no ordering value then.
    "hoodie.combine.before.upsert": "false",
}
"""Of rows with a key each there is nothing to combine, which is a shuffle of them all."""

_LARGE_COMMIT_OPTIONS = {
    # To make bytes of the records, which are counted and then written, takes longer than to hold them.
    "hoodie.write.tagged.record.storage.level": "MEMORY_AND_DISK",
    # A block's records are in memory until it is full. At Hudi's 256 MB the JVM moves them about meanwhile.
    "hoodie.logfile.data.block.max.size": str(4 << 20),
}
"""A commit of hundreds of thousands of rows."""

_BASE_FILE_OPTIONS = {
    # A third of a compaction was gzip. Hudi makes this its default on Spark 3.5, too (apache/hudi#19684).
    "hoodie.parquet.compression.codec": "zstd",
    # Nobody looks for keys in them: the key says the bucket.
    "hoodie.parquet.bloom.filter.enabled": "false",
    # The writer of Spark's rows has one in any case (HoodieInternalRowFileWriterFactory): a megabyte in the
    # footer of each file, were it not of one entry.
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "1",
    "hoodie.index.bloom.fpp": "0.5",
    # The reader with which Hudi merges takes a decimal that is written as a whole number for another one.
    "hoodie.parquet.writelegacyformat.enabled": "true",
}

_READ_OPTIONS = {
    # There is no index to skip by, which Hudi would say in the log at each read.
    "hoodie.enable.data.skipping": "false",
}

_FEW_ROWS_OPTIONS = {
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.markers.delete.parallelism": "1",
}

_ROWS_OF_A_TASK = 500_000
"""A task sorts its rows in memory, as far as it has some."""

_COMPACTION_OPTIONS = {
    # The next part of a compaction may follow on no commit.
    "hoodie.compact.inline.max.delta.commits": "0",
    # DataSourceUtils makes clients that leave it to their caller.
    "hoodie.auto.commit": "true",
}
_REPLACING_OPTIONS = {
    "hoodie.datasource.write.operation": "insert_overwrite_table",
    # The types are the new rows' alone, not those nearest to what the table had: no file holds both.
    "hoodie.internal.write.schema.canonicalize": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
"""A commit that replaces every file group of the table by new ones."""
