"""Write the files of a commit with the Java class RowUpsert.

It replaces Hudi's own upsert, `rows.write.format("hudi")`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_app.jvm.java_classes import java_class
from spark_app.steps.row_upsert import HudiClient, HudiMetaClient, WriteStats


@dataclass(frozen=True)
class JavaRowUpsert:
    """The writer of one table (`spark_app.steps.row_upsert.RowUpsert`)."""

    _java: Any = field(repr=False)

    @staticmethod
    def of(spark: SparkSession, table: str) -> JavaRowUpsert:
        """Return a writer for the table with this name."""
        return JavaRowUpsert(java_class(spark, "RowUpsert")(table))

    def writer_schema(self, meta_client: HudiMetaClient, rows: DataFrame) -> str:
        return str(self._java.writerSchema(meta_client, rows._jdf))

    def write_in_tasks(
        self,
        client: HudiClient,
        meta_client: HudiMetaClient,
        instant: str,
        rows: DataFrame,
        tasks: int,
    ) -> WriteStats:
        return WriteStats(self._java.write(client, meta_client, instant, rows._jdf, tasks))

    def write_in_buckets(
        self, client: HudiClient, meta_client: HudiMetaClient, instant: str, rows: DataFrame
    ) -> WriteStats:
        return WriteStats(self._java.writeInBuckets(client, meta_client, instant, rows._jdf))

    def committed(self, written: WriteStats) -> None:
        self._java.committed(written)
