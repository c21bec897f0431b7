"""Small text files next to a lake's tables, read through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def texts_below(spark: SparkSession, folder: str) -> Iterator[str]:
    """Yield the contents of all files below a folder, at any depth. The folder need not exist.

    If somebody removes a file meanwhile, this raises, and the caller's next look finds it so."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    file_system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not file_system.exists(path):
        return
    files = file_system.listFiles(path, True)
    while files.hasNext():
        stream = file_system.open(files.next().getPath())
        try:
            text = str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
        yield text
