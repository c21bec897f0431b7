"""Split a JSON document into schema and payload, with the Java class SchemaAndPayload as an expression."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StringType

from spark_app.jvm.java_classes import java_class


def schema_and_payload(text: Column, known: Sequence[str], _examples: Sequence[bytes] = ()) -> Column:
    """Return `struct<known int, schema string, payload string>`, null if the text is no JSON object.

    known    the place of the document's schema in `known`; null if it is another one. Schemas are equal if
             their JSON is, whatever their white space and the order of their names
    schema   the schema in its canonical form; null if the document has none
    payload  the JSON of the payload as it is written; null if it is JSON's null. A document that is neither
             `{"schema":…,"payload":…}` nor `{"payload":…}` is itself the payload
    """
    java = java_class(SparkSession.active(), "SchemaAndPayload")
    return Column(java.read(text.cast(StringType())._jc, list(known)))


def canonical(schema: str) -> str:
    """Return the canonical form of a schema, which is the same for all of its texts."""
    return str(java_class(SparkSession.active(), "SchemaAndPayload").canonical(schema))
