"""Access to one table: its files, Hudi's metadata client and Hudi's write client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi.java_classes import JavaClasses, java_classes
from spark_app.hudi.options import Options, write_options
from spark_app.hudi.table_files import TableFiles
from tributary.contract.lake import TablePolicy


@dataclass(frozen=True)
class TableAccess:
    """Access to the table at `path`, which is called `name` in a catalog."""

    spark: SparkSession
    path: str
    name: str
    policy: TablePolicy

    @cached_property
    def files(self) -> TableFiles:
        return TableFiles(self.spark, self.path)

    @cached_property
    def options(self) -> Options:
        """The options of every write and every service."""
        return write_options(self.name, self.policy)

    @property
    def java(self) -> JavaClasses:
        return java_classes(self.spark)

    def new_meta_client(self) -> Any:
        """Return a HoodieTableMetaClient that reads the table's properties and timeline now."""
        builder = self.java.meta_client.builder()
        return builder.setConf(self.files.storage_configuration).setBasePath(self.path).build()

    @cached_property
    def kept_meta_client(self) -> Any:
        """A HoodieTableMetaClient that has read the table's properties once.

        It can list the timeline again without reading them again."""
        return self.new_meta_client()

    @contextmanager
    def write_client(self, options: Options, schema: str = "") -> Iterator[Any]:
        """Open Hudi's SparkRDDWriteClient with the table's own options and additional ones.

        `schema` is the Avro schema of the rows to write, as JSON. A table service needs none."""
        spark_context: Any = self.spark.sparkContext
        client = self.java.data_source_utils.createHoodieClient(
            spark_context._jsc, schema, self.path, self.name, {**self.options, **options}
        )
        try:
            yield client
        finally:
            client.close()

    def partitions(self) -> frozenset[str]:
        """Return the paths of all partitions in the table; none if it has no partition columns."""
        return self.files.partitions() if self.policy.partition_by else frozenset()
