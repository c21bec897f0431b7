"""Tell an error that means a missing Java class or member. It never passes, so nothing retries it."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError

from tributary.contract.errors import TributaryError

_LINKAGE = re.compile(
    r"java\.lang\.(?:NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|AbstractMethodError"
    r"|IncompatibleClassChangeError|IllegalAccessError|VerifyError|ClassNotFoundException): ([^\n]+)"
)
_OF_PY4J = re.compile(r"py4j\.Py4JException: (?:Method|Constructor) (.+?) does not exist")
_PACKAGE = "'JavaPackage' object is not callable"


class MissingMember(TributaryError):
    """The running Spark, Hudi or Iceberg lacks a class or member that the app calls."""


def missing_member(error: Exception) -> MissingMember | None:
    """Return the error for a person if it means a missing class or member, else None.

    Java's own errors are looked for in the whole text, because Spark and Py4J quote those of their tasks."""
    text = str(error)
    if isinstance(error, TypeError) and _PACKAGE in text:
        return _missing("a Java class")
    if isinstance(error, Py4JError) and (method := _OF_PY4J.search(text)):
        return _missing(method[1])
    linkage = _LINKAGE.search(text)
    return None if linkage is None else _missing(linkage[1].strip())


def _missing(member: str) -> MissingMember:
    return MissingMember(
        "The running Spark, Hudi or Iceberg lacks something that the app calls",
        found=f"missing: {member}",
        expected="the releases that docs/hudi.md names, or ones that are compatible with them",
        remedy='Set [lake].acceleration = "off" and start again: plain PySpark calls far less of them.',
    )
