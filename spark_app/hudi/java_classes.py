"""The Java classes of Hudi and Hadoop that this package calls. Each is looked up once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class JavaClasses:
    """Py4J's handles of classes. Py4J takes some milliseconds to find a class by its name."""

    path: Any
    io_utils: Any
    strings: Any
    hadoop_fs_utils: Any
    storage_utils: Any
    storage_path: Any
    fs_utils: Any
    local_context: Any
    meta_client: Any
    time_zone: Any
    data_source_utils: Any
    timeline_utils: Any
    compaction_utils: Any
    clustering_utils: Any
    cleaning_policy: Any
    clean_plan: Any
    clean_file: Any
    action_instant: Any
    operation_type: Any
    option: Any

    def texts(self, items: Any) -> Sequence[str]:
        """Return the texts of the items of a Java collection, none of which has a line break.

        Asking Py4J for each item takes longer than Hudi takes to list them."""
        joined = str(self.strings.join("\n", items))
        return joined.split("\n") if joined else []


@lru_cache(maxsize=1)
def java_classes(spark: SparkSession) -> JavaClasses:
    """Return the classes in the JVM of the session."""
    jvm: Any = spark._jvm
    hadoop, hudi = jvm.org.apache.hadoop, jvm.org.apache.hudi
    return JavaClasses(
        path=hadoop.fs.Path,
        io_utils=hadoop.io.IOUtils,
        strings=hadoop.util.StringUtils,
        hadoop_fs_utils=hudi.hadoop.fs.HadoopFSUtils,
        storage_utils=hudi.storage.HoodieStorageUtils,
        storage_path=hudi.storage.StoragePath,
        fs_utils=hudi.common.fs.FSUtils,
        local_context=hudi.common.engine.HoodieLocalEngineContext,
        meta_client=hudi.common.table.HoodieTableMetaClient,
        time_zone=hudi.common.model.HoodieTimelineTimeZone,
        data_source_utils=hudi.DataSourceUtils,
        timeline_utils=hudi.common.table.timeline.TimelineUtils,
        compaction_utils=hudi.common.util.CompactionUtils,
        clustering_utils=hudi.common.util.ClusteringUtils,
        cleaning_policy=hudi.common.model.HoodieCleaningPolicy,
        clean_plan=hudi.avro.model.HoodieCleanerPlan,
        clean_file=hudi.avro.model.HoodieCleanFileInfo,
        action_instant=hudi.avro.model.HoodieActionInstant,
        operation_type=hudi.common.model.WriteOperationType,
        option=hudi.common.util.Option,
    )
