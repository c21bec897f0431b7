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
from spark_app.wire.decode import DELETE
from spark_app.wire.payload_shapes import opened_for_operation, operation_in

_WRAPPER = StructType([StructField("value", StringType())])


class RecordsOfForms:
    """Reads the records for `spark_app.sources.files`."""

    def read_lines(self, files: DataFrameReader, paths: Sequence[str], *, may_wrap_values: bool) -> DataFrame:
        lines = files.option("lineSep", "\n").format("text").load(list(paths))
        placed = lines.where(F.length("value") > 0).select(*_place(), "value")
        return _unwrapped(placed) if may_wrap_values else placed

    def read_avro(self, files: DataFrameReader, paths: Sequence[str], schema: str) -> DataFrame:
        found = read_avro_schema(schema)
        records = files.format("avro").option("avroSchema", found.reader).load(list(paths))
        return records.select(*_place(), value_of_record(found).alias("value"))

    def described(self, records: DataFrame) -> DataFrame:
        taken_apart = records.select("*", steps().schema_and_payload(F.col("value"), ()).alias("document"))
        opened = taken_apart.select("*", opened_for_operation(F.col("document")["payload"]).alias("opened"))
        found = opened.select("*", operation_in(F.col("opened")).alias("operation"))
        operation = F.col("operation")
        return found.select(
            *records.columns,
            F.coalesce(operation == DELETE, F.lit(False)).alias("is_delete"),
            (F.col("document")["schema"].isNull() & operation.isNotNull()).alias("lacks_schema"),
        )


def _place() -> tuple[Column, Column, Column]:
    return (
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("number"),
    )


def _unwrapped(lines: DataFrame) -> DataFrame:
    """Replace each `{"value":…}` by what is inside. As text, no number loses a digit."""
    line = F.col("value")
    # Most lines need no parsing: their first name cannot be "value", however it is escaped.
    has_another_name = line.startswith('{"') & ~line.substr(3, 1).isin("v", "\\")
    maybe_wrapped = F.when(~has_another_name, line)
    opened = lines.select("*", steps().open_payload(maybe_wrapped, _WRAPPER, ClosedStruct()).alias("opened"))
    read = opened.select("*", steps().read_payload(F.col("opened"), _WRAPPER, ClosedStruct()).alias("read"))
    wrapper = F.col("read")
    inside = wrapper["payload"]["value"]
    has_only_value = wrapper["problem"].isNull() & ~wrapper["has_unnamed"]
    is_empty = F.size(F.json_object_keys(line)) == 0
    is_wrapped = has_only_value & (inside.isNotNull() | ~is_empty)
    value = F.when(F.coalesce(is_wrapped, F.lit(False)), inside).otherwise(line)
    return read.select(*(value.alias("value") if name == "value" else name for name in lines.columns))
