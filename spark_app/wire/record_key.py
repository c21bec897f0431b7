"""The record key of a change: a text that is different for different keys."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from spark_app.columns.table_columns import TableColumns

_NEEDS_NO_ESCAPE = re.compile(r"\w+", re.ASCII)
_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def key_type(columns: TableColumns) -> StructType:
    """Return the schema of a row's key columns."""
    lake = dict(columns.row)
    return StructType([StructField(name, lake[name]) for name in columns.key])


def record_key(key_row: Column, columns: TableColumns) -> Column:
    """Return the key's columns as JSON objects without commas. Different keys give different texts.

    Where a record key has both a comma and a colon, Hudi takes it for several columns' values
    (KeyGenUtils#extractRecordKeysByFields): all such rows would be in one bucket, and some keys would keep it
    searching endlessly."""
    objects = [_as_json(key_row, field.name, field.dataType) for field in key_type(columns).fields]
    return F.when(key_row.isNotNull(), F.concat_ws(" ", *objects))


def _as_json(key_row: Column, name: str, data_type: DataType) -> Column:
    value = key_row[name]
    if isinstance(data_type, IntegerType | LongType) and _NEEDS_NO_ESCAPE.fullmatch(name):
        # This equals the output of `to_json`, which creates a JSON generator for each value.
        return F.concat(F.lit(f'{{"{name}":'), F.coalesce(value.cast("string"), F.lit("null")), F.lit("}"))
    text = F.to_json(F.struct(value.alias(name)), _JSON_OPTIONS)
    return F.replace(text, F.lit(","), F.lit("\\u002c"))
