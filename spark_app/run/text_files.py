"""Small text files next to a lake's tables, read and written through Hadoop's file systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def texts_below(spark: SparkSession, folder: str) -> Iterator[str]:
    """Yield the contents of all files below a folder, at any depth. The folder need not exist.

    If somebody removes a file meanwhile, this raises, and the caller's next look finds it so."""
    path, file_system = _file(spark, folder)
    if not file_system.exists(path):
        return
    files = file_system.listFiles(path, True)
    while files.hasNext():
        yield _text(spark, file_system, files.next().getPath())


def read_text(spark: SparkSession, uri: str) -> str | None:
    """Return the content of a file, or None if there is none."""
    path, file_system = _file(spark, uri)
    return _text(spark, file_system, path) if file_system.exists(path) else None


def write_text(spark: SparkSession, uri: str, text: str) -> None:
    """Write a file, in place of one that exists."""
    path, file_system = _file(spark, uri)
    stream = file_system.create(path, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def remove_text(spark: SparkSession, uri: str) -> None:
    """Remove a file, if it is there."""
    path, file_system = _file(spark, uri)
    file_system.delete(path, False)


def _file(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """Return Hadoop's path and file system."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _text(spark: SparkSession, file_system: Any, path: Any) -> str:
    jvm: Any = spark._jvm
    stream = file_system.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
