"""The JSON text of a payload as a struct: the Java class PayloadReader as an expression of Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StringType, StructType

NOT_UTF8, MISMATCH = "not_utf8", "mismatch"
"""The problems that a payload can have."""


@dataclass(frozen=True)
class ClosedStruct:
    """The struct of which it is asked whether the text has other fields than the type names: the field of
    that name, or, where the name is empty, all of the payload. A field that matches `ignored` does not count
    (a regular expression, for all of the name)."""

    field: str = ""
    ignored: str | None = None


def read_payload(text: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
    """`struct<payload, problem string, has_unnamed boolean>`, null where the text is.

    `payload` is null where the text is not UTF-8 or no JSON object; a value in it where it is of another type
    than the wire's. `problem` says so: `not_utf8`, or `mismatch`; else it is null."""
    names = (None, None) if closed is None else (closed.field, closed.ignored)
    return Column(_java().read(text.cast(StringType())._jc, wire.json(), *names))


def _java() -> Any:
    jvm: Any = SparkSession.active()._jvm
    return jvm.io.tributary.spark.PayloadReader
