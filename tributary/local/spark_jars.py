"""The jars before Spark's own in the class path: the pinned ones, and the jar of the app's Java classes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pyspark

import spark_app
from spark_app.jvm.classes_jar import CLASSES_JAR, SOURCES
from tributary.artifacts.cache import cached_folder
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.java_compiler import compile_jar, compiled_from
from tributary.artifacts.lock import read_lock

LOCK = Path(spark_app.__file__).with_name("jars.lock.json")
_LINKED = ("hudi-spark", "iceberg-spark", "spark-sql-kafka", "kafka-clients")
"""Prefixes of the artifacts, besides Spark's, whose classes the app's Java classes use."""


def spark_jars(progress: Callable[[FetchProgress], None] | None = None) -> tuple[Path, ...]:
    """Return the jars, after fetching and building the missing ones.

    Raises FetchError, LockError, JavaError or NotCompiled.
    """
    locked = fetch(read_lock(LOCK).on_this_machine(), progress)
    return (*locked.values(), classes_jar())


def classes_jar() -> Path:
    """Return the cached jar of the app's classes, with the same bytes on any machine.

    Raises the errors of `spark_jars`.
    """
    linked = [file for file in read_lock(LOCK).on_this_machine() if file.artifact.startswith(_LINKED)]

    def fill(folder: Path) -> None:
        spark = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
        compile_jar(folder / CLASSES_JAR, SOURCES, [*sorted(spark), *fetch(linked).values()])

    inputs = (compiled_from(SOURCES), pyspark.__version__, *(file.sha256 for file in linked))
    key = hashlib.sha256(" ".join(inputs).encode()).hexdigest()[:16]
    return cached_folder("spark-classes", key, fill) / CLASSES_JAR
