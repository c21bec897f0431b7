"""Events that a test has written, as rows of Spark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from spark_app.sources.event import EVENT

_TASKS = 2


def event_frame(spark: SparkSession, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return the rows as `EVENT`, in two tasks.

    Spark parses them from JSON. `createDataFrame` would start Python workers at each evaluation, which took a
    fifth of the processor time of these tests."""
    middle = (len(rows) + 1) // _TASKS
    texts = [_as_json(part) for part in (rows[:middle], rows[middle:])]
    text = F.element_at(F.array(*map(F.lit, texts)), F.col("id").cast("int") + 1)
    parsed = spark.range(0, _TASKS, 1, _TASKS).select(F.inline(F.from_json(text, ArrayType(EVENT))))
    session: Any = spark._jsparkSession
    # So that the columns are as nullable as those of any other source.
    events = session.internalCreateDataFrame(
        parsed._jdf.queryExecution().toRdd(), session.parseDataType(EVENT.json()), False
    )
    return DataFrame(events, spark)


def _as_json(rows: Sequence[tuple[object, ...]]) -> str:
    return json.dumps([dict(zip(EVENT.fieldNames(), map(_value, row), strict=True)) for row in rows])


def _value(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime) else value
