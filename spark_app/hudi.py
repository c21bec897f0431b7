"""Apache Hudi: the one module that knows its options, its classes and its timeline."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from contract.lake import TablePolicy
from spark_app.decode import DELETE
from spark_app.ledger import LEDGER_KEY, Ledger
from spark_app.table_columns import OPERATION, ORDERING, RECORD_KEY

SESSION_OPTIONS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # Arrays with a null element cannot be written in Parquet's old list structure.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
}
"""What a Spark session needs before it writes a Hudi table."""

COMMITS_BETWEEN_SERVICES = 20
"""Compaction, cleaning and archival read much of the timeline: not for every commit of some rows."""


@dataclass(frozen=True)
class HudiCommit:
    """A completed commit of a table: its instant, as Hudi names it, its ledger, and the rows it wrote."""

    instant: str
    ledger: Ledger
    rows_upserted: int
    rows_deleted: int


@dataclass(frozen=True)
class _Java:
    """Classes and objects of the JVM. To find a class by its name takes it some milliseconds."""

    path: Any
    meta_client: Any
    timeline_utils: Any
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
        properties = self._java.path(f"{self.path}/.hoodie/hoodie.properties")
        return bool(properties.getFileSystem(self._java.hadoop_conf).exists(properties))

    def schema(self) -> StructType:
        """The table's schema, Hudi's own columns included."""
        return self.read().schema

    def read(self) -> DataFrame:
        """The rows of the latest commit."""
        return self.spark.read.format("hudi").load(self.path)

    def last_commit(self) -> HudiCommit | None:
        """The latest commit that holds a ledger. Compactions, cleanings and rollbacks hold none."""
        timeline = self._meta_client().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        instants = timeline.getReverseOrderedInstants().iterator()
        while instants.hasNext():
            instant = instants.next()
            metadata = self._java.timeline_utils.getCommitMetadata(instant, timeline)
            ledger = metadata.getMetadata(LEDGER_KEY)
            if ledger is not None:
                return HudiCommit(
                    instant=instant.requestedTime(),
                    ledger=Ledger.from_json(ledger),
                    rows_upserted=metadata.fetchTotalInsertRecordsWritten()
                    + metadata.fetchTotalUpdateRecordsWritten(),
                    rows_deleted=metadata.getTotalRecordsDeleted(),
                )
        return None

    def last_instant(self) -> str | None:
        """The latest completed commit or compaction; None where there is none."""
        if not self.exists():
            return None
        last = (
            self._meta_client()
            .getActiveTimeline()
            .getCommitsTimeline()
            .filterCompletedInstants()
            .lastInstant()
        )
        return str(last.get().requestedTime()) if last.isPresent() else None

    def delta_commits(self) -> int:
        """How many commits a merge-on-read table has had since its last compaction; 0 for copy-on-write."""
        timeline = self._meta_client().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        instants = timeline.getReverseOrderedInstants().iterator()
        found = 0
        while instants.hasNext() and instants.next().getAction() == "deltacommit":
            found += 1
        return found

    def compact(self) -> None:
        """Merges the log files into base files. No commit may be written meanwhile.

        In table version 6 an instant's completion time is its timeline file's modification time, which S3
        gives in whole seconds. A log file that completes within the second of the compaction's instant would
        be counted to the file slice before it, and its rows never be read
        (CompletionTimeQueryViewV1#isSlicedAfterOrOn). So the compaction runs, and the next commit comes, in a
        later second than it was scheduled in, also where the clock of S3 is up to a second behind.
        """
        self._run_compaction("schedule")
        time.sleep(2 - time.time() % 1)
        self._run_compaction("run")

    def finish_pending_compaction(self) -> None:
        """Runs what a crash has left scheduled: readers other than Spark do not see the commits after it."""
        pending = self._meta_client().getActiveTimeline().filterPendingCompactionTimeline()
        if not pending.empty():
            self._run_compaction("run")

    def write(self, rows: DataFrame, ledger: Ledger, *, cleans: bool = False) -> None:
        """One commit that upserts the rows, deletes those whose `_op` says so, and records the ledger.

        `cleans`: also removes what `history` no longer asks for, and archives old instants.
        """
        services = dict.fromkeys(("hoodie.clean.automatic", "hoodie.archive.automatic"), str(cleans).lower())
        options = {**self._options, **services, LEDGER_KEY: ledger.to_json()}
        rows.write.format("hudi").options(**options).mode("append").save(self.path)

    def replace_all(self, rows: DataFrame, ledger: Ledger) -> None:
        """One commit after which the table has these rows and no other, in these columns' types, and the
        ledger. Until then readers see the rows that it had, and by time travel also later."""
        options = {**self._options, **_REPLACING_OPTIONS, LEDGER_KEY: ledger.to_json()}
        rows.write.format("hudi").options(**options).mode("append").save(self.path)

    def _run_compaction(self, operation: str) -> None:
        options = {**self._options, "hoodie.compact.inline.max.delta.commits": "1"}
        # The procedure takes options as one text, in which a value can be neither empty nor hold a comma;
        # those of the partition columns are in the table's own properties. Its grammar knows no parameters.
        rendered = ",".join(
            f"{name}={value}" for name, value in options.items() if value and "," not in value
        )
        arguments = {"op": operation, "path": self.path, "options": rendered}
        call = ", ".join(f"{name} => {_sql(value)}" for name, value in arguments.items())
        self.spark.sql(f"CALL run_compaction({call})").collect()

    def _meta_client(self) -> Any:
        builder = self._java.meta_client.builder()
        return builder.setConf(self._java.storage_conf).setBasePath(self.path).build()

    @cached_property
    def _options(self) -> Mapping[str, str]:
        return _write_options(self.name, self.policy)

    @cached_property
    def _java(self) -> _Java:
        jvm: Any = self.spark._jvm
        hadoop_conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        hudi = jvm.org.apache.hudi
        return _Java(
            path=jvm.org.apache.hadoop.fs.Path,
            meta_client=hudi.common.table.HoodieTableMetaClient,
            timeline_utils=hudi.common.table.timeline.TimelineUtils,
            hadoop_conf=hadoop_conf,
            storage_conf=hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop_conf),
        )


def _sql(text: str) -> str:
    """A string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


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
        **_history_options(policy.history),
        **_SMALL_COMMIT_OPTIONS,
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
        # Without it the delete blocks of merge-on-read lose their ordering value.
        "hoodie.combine.before.upsert": "true",
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


def _history_options(history: timedelta) -> dict[str, str]:
    hours = math.ceil(history / timedelta(hours=1))
    return {
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.hours.retained": str(hours),
    }


_SMALL_COMMIT_OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.datasource.write.row.writer.enable": "false",
}
"""A commit of some thousand rows every second or two: what these leave out costs more than it saves."""

_REPLACING_OPTIONS = {
    "hoodie.datasource.write.operation": "insert_overwrite_table",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # The types are the new rows' alone, not those nearest to what the table had: no file holds both.
    "hoodie.internal.write.schema.canonicalize": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
"""A commit that replaces every file group of the table by new ones."""
