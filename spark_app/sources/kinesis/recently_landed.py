"""The records that have just landed, so that a table need not read them back from bronze."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from spark_app.sources.event import EVENT, EVENTS_OF_ONE_TASK, OffsetRange

Place = tuple[str, int, int]
"""A topic, a partition and an offset."""


@dataclass(frozen=True)
class LandedRecord:
    """A record in bronze. `arrived_ms` is in milliseconds since 1970."""

    place: Place
    arrived_ms: int
    key: bytes
    value: bytes


@dataclass
class RecentlyLanded:
    """The last records that landed, up to `most_bytes` of values. Any thread may use it.

    Whoever adds a record says that bronze has it."""

    most_bytes: int = 16 << 20
    _records: dict[Place, LandedRecord] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def add(self, records: Iterable[LandedRecord]) -> None:
        """Add records that have landed, and drop older ones if there are too many."""
        with self._lock:
            for record in records:
                self._records[record.place] = record
                self._bytes += len(record.value)
            while self._bytes > self.most_bytes:
                # A dictionary has its keys in the order in which they came.
                self._bytes -= len(self._records.pop(next(iter(self._records))).value)

    def find(self, topic: str, ranges: Iterable[OffsetRange]) -> list[LandedRecord] | None:
        """Return all records of the ranges; None if one of them is not held."""
        with self._lock:
            found = [
                self._records.get((topic, each.partition, offset))
                for each in ranges
                for offset in range(each.first, each.until)
            ]
        there = [record for record in found if record is not None]
        return there if len(there) == len(found) else None

    def read(self, spark: SparkSession, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame | None:
        """Return the events (`EVENT`) of the ranges, in one task. None if they are many, or not all held."""
        if sum(each.length for each in ranges) > EVENTS_OF_ONE_TASK:
            return None
        records = self.find(topic, ranges)
        if records is None:
            return None
        rows = [
            (
                *record.place,
                datetime.fromtimestamp(record.arrived_ms / 1000, UTC),
                *(bytearray(record.key), bytearray(record.value), None, None),
            )
            for record in records
        ]
        return spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), EVENT, verifySchema=False)
