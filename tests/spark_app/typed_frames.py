"""Rows that a test has written, as Spark rows.

Spark parses them from JSON. `createDataFrame` would start Python workers at each evaluation, which took a
quarter of the CPU time of these tests.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, MapType, StructField, StructType

from spark_app.sources.event import EVENT

Values: TypeAlias = Sequence[Any]


def event_frame(spark: SparkSession, rows: Sequence[Values]) -> DataFrame:
    """Return the rows as `EVENT`, in two tasks."""
    middle = (len(rows) + 1) // 2
    return tasks_frame(spark, (rows[:middle], rows[middle:]), EVENT)


def numbered_texts(spark: SparkSession, texts: Iterable[bytes]) -> DataFrame:
    """Return a column `text` (binary), and the `number` (int) of each text, from 0."""
    schema = StructType([StructField("number", IntegerType()), StructField("text", BinaryType())])
    return typed_frame(spark, list(enumerate(texts)), schema)


def typed_frame(spark: SparkSession, rows: Sequence[Values], schema: StructType) -> DataFrame:
    """Return the rows in one task. Each row has a value for each field, and so has each struct in it."""
    return tasks_frame(spark, (rows,), schema)


def tasks_frame(spark: SparkSession, tasks: Sequence[Sequence[Values]], schema: StructType) -> DataFrame:
    """Return the rows of each task. There is at least one task."""
    texts = [json.dumps([_json(row, schema) for row in rows]) for rows in tasks]
    text = F.element_at(F.array(*map(F.lit, texts)), F.col("id").cast("int") + 1)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    parsed = numbers.select(F.inline(F.from_json(text, ArrayType(schema))))
    session: Any = spark._jsparkSession
    # This makes the columns as nullable as those of any other source.
    typed = session.internalCreateDataFrame(
        parsed._jdf.queryExecution().toRdd(), session.parseDataType(schema.json()), False
    )
    return DataFrame(typed, spark)


def _json(value: Any, data_type: DataType) -> object:
    match data_type:
        case _ if value is None:
            return None
        case StructType():
            fields = zip(data_type.fields, value, strict=True)
            return {field.name: _json(each, field.dataType) for field, each in fields}
        case ArrayType():
            return [_json(each, data_type.elementType) for each in value]
        case MapType():
            assert isinstance(value, Mapping)
            return {str(key): _json(each, data_type.valueType) for key, each in value.items()}
    match value:
        case bytes() | bytearray():
            return b64encode(value).decode()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value
