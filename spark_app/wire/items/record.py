"""The record of a change that DynamoDB sends to Kinesis: its operation, time, key and item."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_app.wire.items.attributes import Item
from spark_app.wire.reasons import (
    MISSING_KEY,
    MISSING_ROW,
    NOT_AN_ITEM_CHANGE,
    NOT_JSON,
    NOT_UTF8,
)

_OPERATIONS = {"INSERT": "c", "MODIFY": "u", "REMOVE": "d"}
"""By `eventName`."""

_OF_TTL = "dynamodb.amazonaws.com"
"""The `principalId` of the service that deletes items whose time to live is over."""


class UnreadableRecord(ValueError):
    """A record that does not tell of a change. `reason` is one of `wire.reasons.REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class ItemChange:
    """One change of an item.

    operation  c, u or d
    time_us    when DynamoDB wrote it, in microseconds since 1970, as exactly as the record says
    image      the whole item after the change; None for a delete
    by_ttl     DynamoDB has deleted the item because its time to live was over
    """

    operation: str
    time_us: int
    keys: Item
    image: Item | None
    by_ttl: bool


def read_record(data: bytes) -> ItemChange:
    """Read the bytes of a record. Raises `UnreadableRecord`."""
    content = content_of(data)
    change = content.get("dynamodb")
    operation = _OPERATIONS.get(str(content.get("eventName")))
    time_us = _time_us(change) if isinstance(change, dict) else None
    if operation is None or not isinstance(change, dict) or time_us is None:
        raise UnreadableRecord(NOT_AN_ITEM_CHANGE)
    keys, image = change.get("Keys"), change.get("NewImage")
    if not isinstance(keys, dict) or not keys:
        raise UnreadableRecord(MISSING_KEY)
    if operation != "d" and not isinstance(image, dict):
        raise UnreadableRecord(MISSING_ROW)
    identity = content.get("userIdentity")
    by_ttl = operation == "d" and isinstance(identity, dict) and identity.get("principalId") == _OF_TTL
    return ItemChange(operation, time_us, keys, None if operation == "d" else image, by_ttl)


def table_of_record(data: bytes) -> str | None:
    """Return the name of the table whose item the record changes; None if the record does not say."""
    if (begin := _BEGIN.match(data)) is not None:
        return begin[1].decode()
    try:
        name = content_of(data).get("tableName")
    except UnreadableRecord:
        return None
    return name if isinstance(name, str) else None


_BEGIN = re.compile(rb'\{(?:"\w+": ?(?:"[ -!#-\[\]-~]*"|null), ?)*"tableName": ?"([\w.-]+)"', re.ASCII)
"""The beginning of each record that DynamoDB sends, except of TTL deletes. To parse it all takes long.

The rest can be damaged. Then it is a damaged record of that table."""


def content_of(data: bytes) -> Mapping[str, Any]:
    """Return the JSON object that the bytes are. Raises `UnreadableRecord`."""
    try:
        content = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise UnreadableRecord(NOT_UTF8) from None
    except (ValueError, RecursionError):
        raise UnreadableRecord(NOT_JSON) from None
    if not isinstance(content, dict):
        raise UnreadableRecord(NOT_AN_ITEM_CHANGE)
    return content


def _time_us(change: Mapping[str, Any]) -> int | None:
    """Return the time in microseconds. Records without a precision have milliseconds."""
    time, precision = change.get("ApproximateCreationDateTime"), change.get(_PRECISION, "MILLISECOND")
    factor = {"MICROSECOND": 1, "MILLISECOND": 1_000}.get(precision) if isinstance(precision, str) else None
    if factor is None or not isinstance(time, int) or isinstance(time, bool):
        return None
    return time * factor if 0 <= time * factor < _END_OF_TIME_US else None


_PRECISION = "ApproximateCreationDateTimePrecision"
_END_OF_TIME_US = 253_402_300_800_000_000
"""The year 10000, which timestamps of some readers cannot reach."""
