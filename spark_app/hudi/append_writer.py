"""Write rows with the app's own Java code: to log files, and to a base file if a bucket has none yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from spark_app.hudi.options import FEW_ROWS_OPTIONS, Options
from spark_app.hudi.spread import FewRows, ManyRows, RowsInBuckets, Spread, tasks_of
from spark_app.hudi.table_access import TableAccess
from spark_app.steps.row_upsert import HudiClient, RowUpsert, WriteStats


@dataclass(frozen=True)
class AppendWriter:
    """Writes to a merge-on-read table, and writes the first commit of any table.

    Keep the object as long as the table is written to. It remembers the files of its last commit, and does
    not list them again if nothing else was written since."""

    table: TableAccess
    upsert: RowUpsert

    def write(self, rows: DataFrame, metadata: Mapping[str, str], spread: Spread) -> None:
        """Commit the rows, one per key, and the metadata. One Spark job."""
        meta_client = self.table.kept_meta_client
        meta_client.reloadActiveTimeline()
        schema = self.upsert.writer_schema(meta_client, rows)
        with self.table.write_client(_client_options(spread), schema) as client:
            instant = client.startCommit(meta_client.getCommitActionType(), meta_client)
            written = self._write_files(client, instant, rows, spread)
            self._complete(client, instant, written, metadata)
        self.upsert.committed(written)

    def _write_files(self, client: HudiClient, instant: str, rows: DataFrame, spread: Spread) -> WriteStats:
        meta_client, spark = self.table.kept_meta_client, self.table.spark
        match spread:
            case RowsInBuckets():
                return self.upsert.write_in_buckets(client, meta_client, instant, rows)
            case FewRows():
                tasks = spark.sparkContext.defaultParallelism
            case ManyRows(changes):
                tasks = tasks_of(spark, changes)
        return self.upsert.write_in_tasks(client, meta_client, instant, rows, tasks)

    def _complete(self, client: Any, instant: str, written: WriteStats, metadata: Mapping[str, str]) -> None:
        java, action = self.table.java, self.table.kept_meta_client.getCommitActionType()
        client.setOperationType(java.operation_type.UPSERT)
        client.commitStats(instant, written, java.option.of(dict(metadata)), action)


def _client_options(spread: Spread) -> Options:
    return FEW_ROWS_OPTIONS if isinstance(spread, FewRows) else {}
