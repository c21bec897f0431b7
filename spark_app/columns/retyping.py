"""Give stored values another type of the lake."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, DecimalType, StringType


def in_type(stored: DataFrame, name: str, data_type: DataType) -> Column:
    """Return a column of stored rows in a type that holds all its values. A column that has the type stays.

    A value that becomes text gets the text that it would have had from the start: decimals without zeros at
    their end, bytes in base64, and arrays as JSON."""
    before = stored.schema[name].dataType
    if isinstance(data_type, ArrayType) and isinstance(before, ArrayType):
        if not isinstance(data_type.elementType, StringType) or isinstance(before.elementType, StringType):
            return F.col(name).cast(data_type)
        # Only sets of items become texts. They are stored in the order of their texts.
        return F.array_sort(F.transform(name, lambda value: text_of(value, before.elementType)))
    if not isinstance(data_type, StringType) or isinstance(before, StringType):
        return F.col(name).cast(data_type)
    if isinstance(before, ArrayType):
        return _json_of_array(F.col(name), before.elementType)
    return text_of(F.col(name), before)


def text_of(value: Column, data_type: DataType) -> Column:
    """Return the text of a value, which stays the same if its column gets a wider type."""
    if isinstance(data_type, BinaryType):
        return F.base64(value)
    text = value.cast("string")
    if isinstance(data_type, DecimalType) and data_type.scale > 0:
        return F.regexp_replace(F.regexp_replace(text, r"(\.\d*?)0+$", "$1"), r"\.$", "")
    return text


def _json_of_array(values: Column, element: DataType) -> Column:
    texts = F.transform(values, lambda value: text_of(value, element))
    if isinstance(element, StringType | BinaryType):
        return F.to_json(texts)
    members = F.concat_ws(",", texts)
    return F.when(values.isNotNull(), F.concat(F.lit("["), members, F.lit("]")))
