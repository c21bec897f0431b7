"""Choose the steps of this process."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

from spark_app.acceleration.class_file import read_class
from spark_app.acceleration.link_check import ReadClass, missing_links
from spark_app.jvm import java_steps
from spark_app.plain import plain_steps
from spark_app.steps import steps
from spark_app.steps.steps import Name
from tributary.contract.acceleration import Acceleration
from tributary.contract.errors import TributaryError

_PACKAGE = "io/tributary/spark/"
_ONE_OF_OURS = f"{_PACKAGE}RowUpsert.class"
_MOST_SHOWN = 3


class NotAccelerated(TributaryError):
    """The lake requires the steps in Java, and they cannot run here."""


@dataclass(frozen=True)
class Choice:
    """The steps that the process uses, and why."""

    steps: Name
    reason: str


def choose_steps(spark: SparkSession, wanted: Acceleration, *, is_pinned: bool = False) -> Choice:
    """Let the process use the steps in Java if it may and can, else those in plain PySpark.

    With `is_pinned`, the class path has exactly the jars for which the Java was compiled, and nothing is
    looked up. Raises `NotAccelerated` if the lake requires the Java, and something that it links to is
    missing."""
    if wanted == "off":
        steps.use(plain_steps)
        return Choice("plain", 'acceleration = "off" in the lake file')
    missing = () if is_pinned else _missing(spark)
    if not missing:
        steps.use(java_steps)
        reason = "the jars are the pinned ones" if is_pinned else "all that the Java classes link to is there"
        return Choice("accelerated", reason)
    if wanted == "required":
        raise NotAccelerated(
            "The lake requires the accelerated steps, and this Spark cannot run them",
            where="[lake].acceleration",
            found=f"missing: {_shown(missing)}",
            expected="the Spark, Hudi and Iceberg for which the Java classes were compiled",
            remedy='Use such a release, or set acceleration = "auto": the app then runs in plain PySpark.',
        )
    steps.use(plain_steps)
    return Choice("plain", f"this Spark or Hudi lacks {_shown(missing)}")


def _missing(spark: SparkSession) -> Sequence[str]:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.getResource(_ONE_OF_OURS)
    if found is None:
        return ["the jar of the app's Java classes"]
    with zipfile.ZipFile(_jar_of(str(found.toString()))) as jar:
        names = [name for name in jar.namelist() if name.startswith(_PACKAGE) and name.endswith(".class")]
        own = [read_class(jar.read(name)) for name in names]
    return missing_links(own, _from(loader))


def _jar_of(url: str) -> Path:
    """Return the jar in a URL such as `jar:file:/folder/name.jar!/io/…`."""
    return Path(unquote(urlparse(url.removeprefix("jar:").partition("!")[0]).path))


def _from(loader: Any) -> ReadClass:
    def read(name: str) -> bytes | None:
        stream = loader.getResourceAsStream(f"{name}.class")
        if stream is None:
            return None
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    return read


def _shown(missing: Sequence[str]) -> str:
    more = len(missing) - _MOST_SHOWN
    return ", ".join(missing[:_MOST_SHOWN]) + (f", and {more} more" if more > 0 else "")
