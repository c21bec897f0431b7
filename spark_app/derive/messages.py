"""The messages of an output topic: JSON, or Avro with its schema in the registry.

The key is JSON in both. It is the row's `_key`, so that a deleted row's message has the key of the row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION, RECORD_KEY
from spark_app.derive.result_rows import ResultNotUsable, columns_of
from spark_app.schema_registry.registry import SchemaStore

_NAMESPACE = "derived.tables"
_SIMPLE: Mapping[type[DataType], Any] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
}


def json_messages(rows: DataFrame) -> DataFrame:
    """Return key and value of a message for each row. A deleted row's value is null, as of a tombstone."""
    return _messages(rows, F.to_json(_row(rows), {"ignoreNullFields": "false"}).cast("binary"))


def avro_messages(rows: DataFrame, table: str, topic: str, store: SchemaStore) -> DataFrame:
    """Return the same messages in Avro, and give the registry their schema if it does not have it.

    Raises `ResultNotUsable`, and what `SchemaStore.add` raises."""
    schema = value_schema(table, rows.select(*columns_of(rows).names).schema)
    start = store.add(topic, schema).starts[0]
    return _messages(rows, F.concat(F.lit(start), to_avro(_row(rows), schema)))


def value_schema(table: str, columns: StructType) -> str:
    """Return the Avro schema of a derived table's rows. Raises `ResultNotUsable`.

    Every field may be null and has null as its default. So a schema with more or fewer columns reads the
    messages of another."""
    return json.dumps(_record(columns, (table,)), separators=(",", ":"))


def _messages(rows: DataFrame, value: Column) -> DataFrame:
    return rows.select(
        F.col(RECORD_KEY).cast("binary").alias("key"),
        F.when(F.col(OPERATION) != DELETE_MARKER, value).alias("value"),
    )


def _row(rows: DataFrame) -> Column:
    return F.struct(*(F.col(f"`{name}`") for name in columns_of(rows).names))


def _record(columns: StructType, path: Sequence[str]) -> Mapping[str, Any]:
    """Return the schema of a record. Its name tells its place, because Avro wants each name only once."""
    return {
        "type": "record",
        "name": "__".join(path),
        **({"namespace": _NAMESPACE} if len(path) == 1 else {}),
        "fields": list(_fields(columns.fields, path)),
    }


def _fields(fields: Sequence[StructField], path: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for field in fields:
        of_type = _nullable(field.dataType, (*path, field.name))
        yield {"name": field.name, "type": of_type, "default": None}


def _nullable(data_type: DataType, path: Sequence[str]) -> Any:
    return ["null", _type(data_type, path)]


def _type(data_type: DataType, path: Sequence[str]) -> Any:
    match data_type:
        case StructType():
            return _record(data_type, path)
        case ArrayType():
            return {"type": "array", "items": _nullable(data_type.elementType, path)}
        case DecimalType():
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": data_type.precision,
                "scale": data_type.scale,
            }
        case _ if (simple := _SIMPLE.get(type(data_type))) is not None:
            return simple
    raise ResultNotUsable(
        "a column has a type that messages in Avro cannot have",
        found=f"{'.'.join(path[1:])}: {data_type.simpleString()}",
        remedy="Give it another type with CAST.",
    )
