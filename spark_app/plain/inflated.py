"""Undo the compression by zlib with a Python function, because Spark has none."""

from __future__ import annotations

import zlib

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

_MOST_BYTES = 512 << 20


def inflated(compressed: Column) -> Column:
    return F.udf(inflate, BinaryType())(compressed)


def inflate(compressed: bytearray | None) -> bytes | None:
    """Return the bytes before their compression; null if they are not what zlib writes, or too many."""
    if compressed is None:
        return None
    decompressor = zlib.decompressobj()
    try:
        found = decompressor.decompress(bytes(compressed), _MOST_BYTES + 1)
    except zlib.error:
        return None
    return found if decompressor.eof and len(found) <= _MOST_BYTES else None
