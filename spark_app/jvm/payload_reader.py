"""The JSON text of a payload as a struct: the Java class PayloadReader as an expression of Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StringType, StructType

from spark_app.jvm.java_classes import java_class

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
    java = java_class(SparkSession.active(), "PayloadReader")
    return Column(java.read(text.cast(StringType())._jc, wire.json(), *_names(closed)))


@dataclass(frozen=True)
class ReadableShape:
    """A shape that a payload can have: it does if at least `least` of `names` are names at its top."""

    name: str
    wire: StructType
    closed: ClosedStruct
    names: tuple[str, ...]
    least: int


def read_shape(text: Column, shapes: Sequence[ReadableShape]) -> Column:
    """Return a struct with a field for each shape, by its name: what `read_payload` returns in the field of
    the first shape that the payload has, and null in all others.

    The struct is null where the text is no JSON object or has none of the shapes."""
    java = java_class(SparkSession.active(), "ShapeReader")
    found = [
        java.shape(shape.name, shape.wire.json(), *_names(shape.closed), list(shape.names), shape.least)
        for shape in shapes
    ]
    return Column(java.read(text.cast(StringType())._jc, found))


def _names(closed: ClosedStruct | None) -> tuple[str | None, str | None]:
    return (None, None) if closed is None else (closed.field, closed.ignored)
