"""Find the type that Spark reads Avro of a schema as, with the classes of Avro and of Spark's Avro reader."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def type_of_avro(schema: str) -> str:
    """Return the type as Spark's JSON. Raises ValueError if Avro or Spark cannot use the schema."""
    jvm: Any = SparkSession.active()._jvm
    try:
        parsed = jvm.org.apache.avro.Schema.Parser().parse(schema)
        return str(jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(parsed).dataType().json())
    except Py4JJavaError as error:
        raise ValueError(str(error.java_exception)) from error
