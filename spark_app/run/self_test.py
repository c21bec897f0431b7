"""The self-test: bring a small table of each storage up to date with made-up events, and compare its rows.

The same code then applies the events of the lake's tables. So the self-test finds what the link check cannot
see: a method of Spark or Hudi that exists and does something else."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.table_files import TableFiles
from spark_app.positions.registry import SOURCE_LOGS
from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tributary.contract.acceleration import STEPS_FOLDER
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Storage, TablePolicy

_SCRATCH = f"{STEPS_FOLDER}/scratch"
_TOPIC = "self-test.things"
_THINGS = 20
_SOURCE_MS = 1_700_000_000_000
_LEFT_AFTER_SECONDS = 3600
"""A folder of a self-test that is older than this is of a process that ended during the self-test."""

_ROW = (
    ("id", {"type": "int64", "optional": False}),
    ("name", {"type": "string", "optional": True}),
    ("price", {"type": "string", "optional": True}),
    ("tags", {"type": "array", "optional": True, "items": {"type": "string", "optional": True}}),
)


class WrongRows(TributaryError):
    """The self-test's table does not have the rows that its events describe."""


def run_self_test(spark: SparkSession, bucket: str) -> None:
    """Write, compact, clean, read and drop a table of each storage in a scratch folder of the bucket.

    `bucket` is a bucket or folder without the slash at its end. Raises `WrongRows`, and whatever Spark or
    Hudi raises."""
    with _scratch_folder(spark, bucket) as folder:
        for storage in get_args(Storage):
            _test(spark, folder, storage)


def _test(spark: SparkSession, folder: str, storage: Storage) -> None:
    path = f"{folder}/{storage}"
    hudi = HudiTable(spark, path, f"self_test_{storage}", TablePolicy(storage=storage, buckets=2))
    table = TableIngest(
        _TOPIC,
        _TOPIC,
        _Things(spark),
        hudi,
        f"{folder}/quarantine",
        TopicForm(next(iter(SOURCE_LOGS.values()))),
    )
    for first in (0, _THINGS):
        table.apply((OffsetRange(0, first, first + _THINGS),))
    table.serve()
    rows = hudi.read().select("id", "name", "price", "tags").collect()
    found = {row["id"]: (row["name"], row["price"], tuple(row["tags"])) for row in rows}
    wrong = [number for number in range(_THINGS) if found.get(number) != _expected(number)]
    if wrong or len(rows) != len(found):
        raise WrongRows(
            f"The self-test's {storage} table has other rows than its events describe",
            found=f"{len(rows)} rows; id {wrong[:1]}: {[found.get(number) for number in wrong[:1]]}",
            expected=str([_expected(number) for number in wrong[:1]]),
        )


def _expected(number: int) -> tuple[str, str, tuple[str, str]] | None:
    """Return a thing after all events: of five things, one was deleted and two were changed."""
    if number % 5 == 4:
        return None
    name = "größer" if number % 5 in (2, 3) else "thing"
    return f"{name} {number}", "1.10", ("a", str(number))


@dataclass(frozen=True)
class _Things:
    """A source of events: first an insert of each thing, then an update or a delete of some of them."""

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession

    def topics(self) -> frozenset[str]:
        return frozenset({_TOPIC})

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        return dict.fromkeys(topics, TopicExtent({0: 0}, {0: 2 * _THINGS}))

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        (wanted,) = ranges
        offset = F.col("id")
        return self.spark.range(wanted.first, wanted.until, 1, 1).select(
            F.lit(topic).alias("topic"),
            F.lit(0).alias("partition"),
            offset.alias("offset"),
            F.timestamp_millis(F.lit(_SOURCE_MS)).alias("timestamp"),
            _key(offset % _THINGS).cast("binary").alias("key"),
            _value(offset).cast("binary").alias("value"),
            *(F.lit(None).cast("binary").alias(name) for name in EVENT.names[6:]),
        )


def _key(number: Column) -> Column:
    schema = _struct({"id": {"type": "int64", "optional": False}})
    return F.format_string(f'{{"schema":{_escaped(schema)},"payload":{{"id":%d}}}}', number)


def _value(offset: Column) -> Column:
    """Return the event of the offset: the second batch begins at `_THINGS`."""
    number = offset % _THINGS
    is_first, kind = offset < _THINGS, number % 5
    op = F.when(is_first, "c").when(kind == 4, "d").when(kind.isin(2, 3), "u").otherwise("r")
    name = F.when(is_first | ~kind.isin(2, 3), "thing").otherwise("größer")
    row = F.format_string(
        '{"id":%d,"name":"%s %d","price":"1.10","tags":["a","%d"]}', number, name, number, number
    )
    return F.format_string(
        f'{{"schema":{_escaped(_envelope())},"payload":{{"before":null,"after":%s,'
        f'"source":{{"ts_ms":{_SOURCE_MS}}},"op":"%s"}}}}',
        F.when(op == "d", "null").otherwise(row),
        op,
    )


def _envelope() -> Mapping[str, Any]:
    row = {**_struct(dict(_ROW)), "optional": True}
    source = _struct({"ts_ms": {"type": "int64", "optional": False}})
    op = {"type": "string", "optional": False}
    return _struct({"before": row, "after": row, "source": source, "op": op})


def _struct(fields: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    named = [{**schema, "field": name} for name, schema in fields.items()]
    return {"type": "struct", "fields": named, "optional": False}


def _escaped(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"))


@contextmanager
def _scratch_folder(spark: SparkSession, bucket: str) -> Iterator[str]:
    """Yield a new folder that is removed afterwards, with those that ended processes have left."""
    files = TableFiles(spark, bucket)
    name = f"{time.time_ns() // 10**9}-{uuid.uuid4().hex[:8]}"
    try:
        yield f"{bucket}/{_SCRATCH}/{name}"
    finally:
        for left in files.names_in(_SCRATCH) if files.exists(_SCRATCH) else ():
            if left == name or _is_old(left.partition("-")[0]):
                files.remove_folder(f"{_SCRATCH}/{left}")


def _is_old(began: str) -> bool:
    return began.isdigit() and int(began) < time.time() - _LEFT_AFTER_SECONDS
