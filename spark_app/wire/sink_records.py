"""Records of an S3 sink's files: turn each record into the value of an event."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_app.steps.payloads import ClosedStruct
from spark_app.steps.steps import steps
from spark_app.wire.avro_file import value_of_record
from spark_app.wire.avro_schema import read_avro_schema
from spark_app.wire.payload_shapes import operation_of

_WRAPPER = StructType([StructField("value", StringType())])


class RecordsOfForms:
    """Reads the records for `spark_app.sources.files`."""

    def read_lines(self, files: DataFrameReader, paths: Sequence[str], *, may_wrap_values: bool) -> DataFrame:
        lines = files.option("lineSep", "\n").format("text").load(list(paths))
        value = _unwrapped(F.col("value")) if may_wrap_values else F.col("value")
        return lines.where(F.length("value") > 0).select(*_place(), value.alias("value"))

    def read_avro(self, files: DataFrameReader, paths: Sequence[str], schema: str) -> DataFrame:
        found = read_avro_schema(schema)
        records = files.format("avro").option("avroSchema", found.reader).load(list(paths))
        return records.select(*_place(), value_of_record(found).alias("value"))

    def is_delete(self, value: Column) -> Column:
        return F.coalesce(operation_of(steps().schema_and_payload(value, ())["payload"]) == "d", F.lit(False))

    def has_no_schema(self, value: Column) -> Column:
        document = steps().schema_and_payload(value, ())
        return document["schema"].isNull() & operation_of(document["payload"]).isNotNull()


def _place() -> tuple[Column, Column, Column]:
    return (
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("number"),
    )


def _unwrapped(line: Column) -> Column:
    """Return the line, or what is inside its `{"value":…}`. As text, no number loses a digit."""
    # Most lines need no parsing: their first name cannot be "value", however it is escaped.
    has_another_name = line.startswith('{"') & ~line.substr(3, 1).isin("v", "\\")
    opened = steps().open_payload(line, _WRAPPER, ClosedStruct())
    read = steps().read_payload(opened, _WRAPPER, ClosedStruct())
    inside = read["payload"]["value"]
    has_only_value = read["problem"].isNull() & ~read["has_unnamed"]
    is_empty = F.size(F.json_object_keys(line)) == 0
    is_wrapped = has_only_value & (inside.isNotNull() | ~is_empty)
    return F.when(has_another_name, line).when(~is_wrapped, line).otherwise(inside)
