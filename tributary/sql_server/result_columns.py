"""Columns of Arrow as MySQL's protocol sends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any

from mysql_mimic import ColumnType, ResultColumn, ResultSet
from mysql_mimic.charset import CharacterSet

from tributary.api.values import values_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SentAs:
    """How a column is sent.

    name   the type in MySQL's information schema
    of     turns a value of Python into the one to send, unless it is None
    """

    type: ColumnType
    name: str
    of: Callable[[Any], Any] | None = None
    character_set: CharacterSet = CharacterSet.utf8mb4


def result_set_of(table: pa.Table) -> ResultSet:
    """Return the rows of a table as MySQL's protocol sends them."""
    columns, sent = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        way, values = _values(column)
        columns.append(ResultColumn(name, way.type, way.character_set))
        sent.append([None if value is None else way.of(value) for value in values] if way.of else values)
    return ResultSet(list(zip(*sent, strict=True)), columns)


def sent_as(arrow: pa.DataType) -> SentAs:
    """Return how a column of this type is sent. Timestamps are in UTC; nested values are JSON."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_boolean(arrow):
        return SentAs(ColumnType.TINY, "tinyint(1)")
    if kinds.is_int64(arrow) or kinds.is_uint32(arrow):
        return SentAs(ColumnType.LONGLONG, "bigint")
    if kinds.is_uint64(arrow):
        return SentAs(ColumnType.NEWDECIMAL, "decimal(20,0)")
    if kinds.is_integer(arrow):
        return SentAs(ColumnType.LONG, "int")
    if kinds.is_float32(arrow):
        return SentAs(ColumnType.FLOAT, "float")
    if kinds.is_floating(arrow):
        return SentAs(ColumnType.DOUBLE, "double")
    if kinds.is_decimal(arrow):
        return SentAs(ColumnType.NEWDECIMAL, f"decimal({arrow.precision},{arrow.scale})")
    if kinds.is_date(arrow):
        return SentAs(ColumnType.DATE, "date")
    if kinds.is_timestamp(arrow):
        return SentAs(ColumnType.DATETIME, "datetime(6)")
    if kinds.is_time(arrow):
        return SentAs(ColumnType.TIME, "time(6)", _time_of_day)
    if kinds.is_binary(arrow) or kinds.is_large_binary(arrow) or kinds.is_fixed_size_binary(arrow):
        return SentAs(ColumnType.BLOB, "longblob", character_set=CharacterSet.binary)
    if kinds.is_nested(arrow):
        return SentAs(ColumnType.JSON, "json", _json)
    return SentAs(ColumnType.VAR_STRING, "longtext", str)


def _values(column: pa.ChunkedArray) -> tuple[SentAs, list[Any]]:
    """Return a column's values, and how they are sent. Values that Python does not have are texts."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit))  # Without a zone, it is the time in UTC.
    way = sent_as(column.type)
    values = values_of(column)
    is_text = isinstance(next((value for value in values if value is not None), None), str)
    return (sent_as(pa.string()) if is_text else way), values


def _time_of_day(value: time) -> timedelta:
    return timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> str:
    """Return the text of a value that JSON lacks: hexadecimal digits of bytes, and what Python prints."""
    return value.hex() if isinstance(value, bytes) else str(value)
