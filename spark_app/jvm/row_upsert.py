"""Writes the files of a commit: the Java class RowUpsert.

What it replaces is Hudi's own upsert, by `rows.write.format("hudi")`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NewType

from pyspark.sql import DataFrame, SparkSession

from spark_app.jvm.java_classes import java_class

HudiClient = NewType("HudiClient", object)
"""An opaque handle: org.apache.hudi.client.SparkRDDWriteClient."""

HudiMetaClient = NewType("HudiMetaClient", object)
"""An opaque handle: org.apache.hudi.common.table.HoodieTableMetaClient."""

WriteStats = NewType("WriteStats", object)
"""An opaque handle: java.util.List<org.apache.hudi.common.model.HoodieWriteStat>."""


@dataclass(frozen=True)
class RowUpsert:
    """The writer of one table with simple buckets. It remembers the files that its last commit left.

    Rows have the table's columns, in any order: the record key `string`, the ordering column `bigint`, where
    deletes are hard the operation `string`, and columns of any of Spark's types but intervals. There is one
    row a key. In a copy-on-write table it writes the first commit only."""

    _java: Any = field(repr=False)

    @staticmethod
    def of(spark: SparkSession, table: str) -> RowUpsert:
        """Make the writer of the table of that name."""
        return RowUpsert(java_class(spark, "RowUpsert")(table))

    def writer_schema(self, meta_client: HudiMetaClient, rows: DataFrame) -> str:
        """Return the Avro schema to write the rows in, as JSON: theirs, in line with the last commit's.

        The client's timeline has to be the one from before the commit begins."""
        return str(self._java.writerSchema(meta_client, rows._jdf))

    def write_in_tasks(
        self,
        client: HudiClient,
        meta_client: HudiMetaClient,
        instant: str,
        rows: DataFrame,
        tasks: int,
    ) -> WriteStats:
        """Send the rows to so many tasks, each to the one of its file group, which writes them.

        The instant is a requested one of the client, whose configuration has the writer schema. What this
        returns is to be committed. Where it raises, Hudi's next commit rolls back what was written."""
        return WriteStats(self._java.write(client, meta_client, instant, rows._jdf, tasks))

    def write_in_buckets(
        self, client: HudiClient, meta_client: HudiMetaClient, instant: str, rows: DataFrame
    ) -> WriteStats:
        """Do what `write_in_tasks` does with rows that are in the tasks of their `Buckets`.

        They come bucket after bucket there. It raises where they do not."""
        return WriteStats(self._java.writeInBuckets(client, meta_client, instant, rows._jdf))

    def committed(self, written: WriteStats) -> None:
        """Note that what was written last is committed. The next commit then need not list files."""
        self._java.committed(written)
