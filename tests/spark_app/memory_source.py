"""A source of events that a test holds in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange, TopicExtent
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC
from tests.spark_app.typed_frames import event_frame


@dataclass
class MemorySource:
    """A source of `EVENT` rows for any topics, which no longer holds those before the offset `beginning`."""

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession
    rows: Sequence[tuple[object, ...]]
    topic_id: str | None = None
    beginning: int = 0

    def topics(self) -> frozenset[str]:
        return frozenset(str(row[0]) for row in self.rows)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        return {topic: self._extent(topic) for topic in topics}

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        assert all(r.first >= self.beginning for r in ranges)
        wanted = [
            row
            for row in self.rows
            if row[0] == topic
            and any(r.partition == row[1] and r.first <= int(str(row[2])) < r.until for r in ranges)
        ]
        return event_frame(self.spark, wanted)

    def _extent(self, topic: str) -> TopicExtent:
        ends: dict[int, int] = {}
        for row in self.rows:
            if row[0] == topic:
                partition, offset = int(str(row[1])), int(str(row[2]))
                ends[partition] = max(offset + 1, ends.get(partition, 0))
        return TopicExtent(dict.fromkeys(ends, self.beginning), ends, self.topic_id)


def table_of_things(hudi: HudiTable, rows: Sequence[tuple[object, ...]], folder: Path) -> TableIngest:
    """Return the table `things`, which applies these events, with its quarantine in the folder."""
    source, quarantine = MemorySource(hudi.spark, rows), str(folder / "quarantine")
    return TableIngest("things", TOPIC, source, hudi, quarantine, TopicForm(PostgresLog()))
