"""The Java classes of Hadoop and Hudi that this package calls. Each is looked up once.

Everything reads a table's files with Hadoop's public classes. Hudi's own classes are few, and docs/engine.md
says why each is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HadoopClasses:
    """Py4J's handles of public classes. Py4J takes some milliseconds to find a class by its name."""

    path: Any
    iterators: Any
    io_utils: Any
    strings: Any

    def texts(self, iterator: Any) -> Sequence[str]:
        """Return the texts of what Hadoop's iterator returns, none of which has a line break.

        Asking Py4J for each item takes longer than Hadoop takes to list them."""
        joined = str(self.strings.join("\n", self.iterators.toList(iterator)))
        return joined.split("\n") if joined else []


@dataclass(frozen=True)
class HudiClasses:
    """Py4J's handles of Hudi's classes. Most are not public, so another release can lack them."""

    hadoop_fs_utils: Any
    meta_client: Any
    data_source_utils: Any
    compaction_utils: Any
    clean_plan: Any
    clean_file: Any
    action_instant: Any
    operation_type: Any
    option: Any


@lru_cache(maxsize=1)
def hadoop_classes(spark: SparkSession) -> HadoopClasses:
    """Return the classes in the JVM of the session."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop
    return HadoopClasses(
        path=hadoop.fs.Path,
        iterators=hadoop.util.functional.RemoteIterators,
        io_utils=hadoop.io.IOUtils,
        strings=hadoop.util.StringUtils,
    )


@lru_cache(maxsize=1)
def hudi_classes(spark: SparkSession) -> HudiClasses:
    """Return the classes in the JVM of the session."""
    jvm: Any = spark._jvm
    hudi = jvm.org.apache.hudi
    return HudiClasses(
        hadoop_fs_utils=hudi.hadoop.fs.HadoopFSUtils,
        meta_client=hudi.common.table.HoodieTableMetaClient,
        data_source_utils=hudi.DataSourceUtils,
        compaction_utils=hudi.common.util.CompactionUtils,
        clean_plan=hudi.avro.model.HoodieCleanerPlan,
        clean_file=hudi.avro.model.HoodieCleanFileInfo,
        action_instant=hudi.avro.model.HoodieActionInstant,
        operation_type=hudi.common.model.WriteOperationType,
        option=hudi.common.util.Option,
    )
