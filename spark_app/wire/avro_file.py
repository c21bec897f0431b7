"""A sink's Avro files: write their records as JsonConverter would have written the events."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.wire.avro_schema import AvroSchema


def value_of_record(schema: AvroSchema) -> Column:
    """Return the value of the event that a record is, as JSON with its schema."""
    payload = F.to_json(F.struct(*[F.col(f"`{name}`") for name in schema.fields]))
    return F.concat(F.lit(f'{{"schema":{schema.connect},"payload":'), payload, F.lit("}"))
