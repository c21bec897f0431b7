"""The reference model of values: what columns and JSON have to hold for a plain Python value."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StringType

from tests.spark_app.items.generated import Plain


def plain(value: Plain) -> Any:
    """Return what a reader of the JSON finds: the reference model of `plain_json`."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case frozenset():
            return [plain(each) for each in sorted(value)]
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return value


def read_json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def stored(value: Plain, data_type: DataType) -> Any:
    """Return what a column of the type has to hold: the reference model of `value_of`."""
    if value is None:
        return None
    if isinstance(data_type, ArrayType):
        return sorted(stored(each, data_type.elementType) for each in value)
    if not isinstance(data_type, StringType):
        return value
    if isinstance(value, Decimal):
        return ("number", value)
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return ("JSON", plain(value))


def read_back(found: Any, value: Plain, data_type: DataType) -> Any:
    if isinstance(data_type, ArrayType):
        element, some = data_type.elementType, next(iter(value))
        return sorted(read_back(each, some, element) for each in found)
    if isinstance(data_type, StringType) and isinstance(value, Decimal):
        return ("number", Decimal(found))
    is_json = isinstance(data_type, StringType) and not isinstance(value, str | bytes | None)
    return ("JSON", read_json(found)) if is_json else found
