"""Access to one table: its files, Hudi's metadata client and Hudi's write client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi.java_classes import HudiClasses, hudi_classes
from spark_app.hudi.options import Options, write_options
from spark_app.hudi.table_files import PROPERTIES, TableFiles
from spark_app.hudi.table_properties import parse_properties
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
    def java(self) -> HudiClasses:
        return hudi_classes(self.spark)

    @cached_property
    def storage_configuration(self) -> Any:
        """Hudi's view of Hadoop's configuration."""
        return self.java.hadoop_fs_utils.getStorageConf(self.spark.sparkContext._jsc.hadoopConfiguration())

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The table's properties, which are read once."""
        return parse_properties(self.files.read(PROPERTIES).decode())

    def new_meta_client(self) -> Any:
        """Return a HoodieTableMetaClient that reads the table's properties and timeline now."""
        builder = self.java.meta_client.builder()
        return builder.setConf(self.storage_configuration).setBasePath(self.path).build()

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
        """Return the paths of all partitions in the table; none if it has no partition columns.

        Each partition column is one level of folders."""
        if not self.policy.partition_by:
            return frozenset()
        folders = [""]
        for _ in self.policy.partition_by:
            folders = [
                f"{folder}/{entry.name}".lstrip("/")
                for folder in folders
                for entry in self.files.list(folder)
                if entry.is_folder and not entry.name.startswith(".")
            ]
        return frozenset(folders)
