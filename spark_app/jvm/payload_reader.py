"""Read the JSON text of a payload as a struct, with the Java class PayloadReader as a Spark expression."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StringType, StructType

from spark_app.jvm.java_classes import java_class
from spark_app.steps.payloads import ClosedStruct, ReadableShape


def open_payload(text: Column, _wire: StructType, _closed: ClosedStruct | None = None) -> Column:
    """Return the text: Java reads it once."""
    return text.cast(StringType())


def read_payload(text: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
    """Return `struct<payload, problem string, has_unnamed boolean>`, null if the text is null.

    `payload` is null if the text is not UTF-8 or is no JSON object. A value in it is null if it has another
    type than in `wire`. `problem` is `not_utf8` or `mismatch` in these cases, otherwise null."""
    java = java_class(SparkSession.active(), "PayloadReader")
    return Column(java.read(text._jc, wire.json(), *_names(closed)))


def open_shape(text: Column, _shapes: Sequence[ReadableShape]) -> Column:
    """Return the text: Java reads it once."""
    return text.cast(StringType())


def read_shape(text: Column, shapes: Sequence[ReadableShape]) -> Column:
    """Return a struct with a field for each shape, by its name.

    The field of the first shape that the payload has is the result of `read_payload`. All other fields are
    null. The struct is null if the text is no JSON object or has none of the shapes."""
    java = java_class(SparkSession.active(), "ShapeReader")
    found = [
        java.shape(shape.name, shape.wire.json(), *_names(shape.closed), list(shape.names), shape.least)
        for shape in shapes
    ]
    return Column(java.read(text._jc, found))


def _names(closed: ClosedStruct | None) -> tuple[str | None, str | None]:
    return (None, None) if closed is None else (closed.field, closed.ignored)
