"""Choose the steps of this process."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

from spark_app.acceleration.class_file import read_class
from spark_app.acceleration.class_path import fingerprint_of, jars_of
from spark_app.acceleration.link_check import ReadClass, in_jars, missing_links
from spark_app.jvm import java_steps
from spark_app.plain import plain_steps
from spark_app.steps import steps
from spark_app.steps.steps import Name
from tributary.contract.acceleration import Acceleration
from tributary.contract.errors import TributaryError

_PACKAGE = "io/tributary/spark/"
_ONE_OF_OURS = f"{_PACKAGE}RowUpsert.class"
_MOST_SHOWN = 3
_LONGEST_REASON = 300


class NotAccelerated(TributaryError):
    """The lake requires the steps in Java, and they cannot run here."""


class Passes(Protocol):
    """Remembers the class paths on which the link check and the self-test have passed."""

    def has(self, fingerprint: str, /) -> bool: ...

    def add(self, fingerprint: str, /) -> None: ...


@dataclass(frozen=True)
class SelfTest:
    """A test of the steps that the process uses. It raises an error if they do not work.

    If it has passed once, `passes` remembers that, and it need not run again on the same class path."""

    run: Callable[[], None]
    passes: Passes


@dataclass(frozen=True)
class Choice:
    """The steps that the process uses, and why."""

    steps: Name
    reason: str


def choose_steps(
    spark: SparkSession, wanted: Acceleration, *, is_pinned: bool = False, self_test: SelfTest | None = None
) -> Choice:
    """Let the process use the steps in Java if it may and can, else those in plain PySpark.

    It can if everything that the Java links to is there and the self-test passes. With `is_pinned`, the class
    path has exactly the jars for which the Java was compiled and tested, and nothing is checked. Raises
    `NotAccelerated` if the lake requires the Java, and it cannot run."""
    if wanted == "off":
        steps.use(plain_steps)
        return Choice("plain", 'acceleration = "off" in the lake file')
    if is_pinned:
        steps.use(java_steps)
        return Choice("accelerated", "the jars are the pinned ones")
    fingerprint = "" if self_test is None else fingerprint_of(spark._jvm)
    if self_test is not None and self_test.passes.has(fingerprint):
        steps.use(java_steps)
        return Choice("accelerated", "the self-test has passed on this class path before")
    if missing := missing_members(spark):
        return _plain(wanted, f"this Spark or Hudi lacks {_shown(missing)}")
    steps.use(java_steps)
    if self_test is None:
        return Choice("accelerated", "all that the Java classes link to is there")
    try:
        self_test.run()
    except Exception as error:  # noqa: BLE001  Whatever fails in the Java, plain PySpark takes its place.
        return _plain(wanted, f"the self-test failed: {_first_line(error)}")
    self_test.passes.add(fingerprint)
    return Choice("accelerated", "all that the Java classes link to is there, and the self-test has passed")


def _plain(wanted: Acceleration, reason: str) -> Choice:
    """Use plain PySpark for this reason. Raises `NotAccelerated` if the lake requires the Java."""
    steps.use(plain_steps)
    if wanted != "required":
        return Choice("plain", reason)
    raise NotAccelerated(
        "The lake requires the accelerated steps, and they cannot run here",
        where="[lake].acceleration",
        found=reason,
        expected="the Spark, Hudi and Iceberg for which the Java classes were compiled",
        remedy='Use such a release, or set acceleration = "auto": the app then runs in plain PySpark.',
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    # Py4J's first line only says that an error occurred. The next one is Java's own.
    of_java = next((line for line in lines if line.startswith(": ")), lines[0])
    return f"{type(error).__name__}: {of_java.removeprefix(': ')}"[:_LONGEST_REASON]


def missing_members(spark: SparkSession) -> Sequence[str]:
    """Return what the app's Java links to and the running class path lacks."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.getResource(_ONE_OF_OURS)
    if found is None:
        return ["the jar of the app's Java classes"]
    with zipfile.ZipFile(_jar_of(str(found.toString()))) as jar:
        names = [name for name in jar.namelist() if name.startswith(_PACKAGE) and name.endswith(".class")]
        own = [read_class(jar.read(name)) for name in names]
    # Py4J takes a hundred times as long as Python to read a class.
    with in_jars(jars_of(jvm)) as read_from_jars:
        read_by_java = _from(loader)
        return missing_links(own, lambda name: read_from_jars(name) or read_by_java(name))


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
