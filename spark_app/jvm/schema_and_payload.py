"""A JSON document taken apart into schema and payload: the Java class SchemaAndPayload as an expression."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StringType

from spark_app.jvm.java_classes import java_class


def schema_and_payload(text: Column, known: Sequence[str]) -> Column:
    """Return `struct<known int, schema string, payload string>`, null where the text is no JSON object.

    known    the place of the document's schema among the schemas that are given; null if it is another one.
             Schemas are equal if their JSON is, whatever their white space and the order of their names
    schema   the schema in its canonical form; null if the document has none
    payload  the JSON of the payload as it is written; null if it is JSON's null. A document that is neither
             `{"schema":…,"payload":…}` nor `{"payload":…}` is itself the payload
    """
    java = java_class(SparkSession.active(), "SchemaAndPayload")
    return Column(java.read(text.cast(StringType())._jc, list(known)))


def canonical(schema: str) -> str:
    """Return the canonical form of a schema, which all of its texts share."""
    return str(java_class(SparkSession.active(), "SchemaAndPayload").canonical(schema))
