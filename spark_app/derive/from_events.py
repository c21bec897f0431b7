"""Bring a table that is derived from topics up to date with their events, exactly once.

Spark's Structured Streaming reads the topics in batches. It writes a batch's offsets to its checkpoint before
it runs the batch, and so repeats the same batch after a crash. The commit with a batch's rows has the number
of the batch, so a repeated batch is written once.

A query without tables runs as one streaming query, whose groups and windows live in the checkpoint. A query
with tables runs over the events of each batch, and sees the tables as they are then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.input_tables import InputMissing, InputTables
from spark_app.derive.outputs import Outputs
from spark_app.derive.queries import result_of
from spark_app.derive.record import Record
from spark_app.derive.result_rows import (
    check_result,
    columns_of,
    last_of_each_key,
    replacement,
    table_rows,
    without_hudi,
)
from spark_app.derive.topics import observation_of
from spark_app.hudi.table_files import TableFiles
from spark_app.reports import Committed, EventsDropped, ProgressWriter
from tributary.contract.derivations import Input, QueryNotUsable, StreamDerivation, TopicInput
from tributary.contract.errors import TributaryError

CHECKPOINTS = "_derived"
"""The folder below the quarantine location with Spark's checkpoints. No table's path is like it."""

_GROUPING = ("Aggregate ", "Window ", "Deduplicate ")
"""Names of plan nodes whose rows follow from several events."""


@dataclass
class FromEvents:
    """A table derived from topics.

    topics      their names in Kafka, by the name of the section
    stream      read a topic as a stream of rows, by the name of the section
    ends        return the ends of Kafka topics, by topic and partition
    is_stopped  whether the run has to end
    """

    spark: SparkSession
    derivation: StreamDerivation
    table: DerivedTable
    inputs: InputTables
    outputs: Outputs
    topics: Mapping[str, str]
    stream: Callable[[str], DataFrame]
    ends: Callable[[frozenset[str]], Mapping[str, Mapping[int, int]]]
    checkpoints: str
    progress: ProgressWriter
    is_stopped: Callable[[], bool] = lambda: False
    _generation: int = field(default=0, init=False)
    _read_to: Mapping[str, Mapping[int, int]] | None = field(default=None, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _commits: list[Committed] = field(default_factory=list, init=False)

    def recover(self) -> None:
        self.table.recover()
        self._read_to = None
        record = self.table.record
        if record is None:
            self._generation = 0
        elif self._is_of_query(record) and self._checkpoint_exists(record.generation or 0):
            self._generation = record.generation or 0
        else:
            # Another query, or a lost checkpoint: begin again at the first event that Kafka has.
            self._generation = (record.generation or 0) + 1

    def advance(self) -> Committed | None:
        """Apply the events that the topics have now. Return the last commit, or None if there was none.

        Raises TributaryError, and Spark's AnalysisException for a query that does not fit its inputs."""
        ends = self.ends(frozenset(self._kafka_topics))
        if missing := [topic for topic in self._kafka_topics if not ends.get(topic)]:
            raise TopicMissing(
                "Kafka has no topic of this name yet, which the query reads",
                found=", ".join(missing),
                remedy="Check the name in the lake file, or create the topic.",
            )
        if ends == self._read_to:
            return None
        self._error, self._commits = None, []
        query, is_interrupted = self._start(), False
        try:
            while not query.awaitTermination(1):
                if self.is_stopped():
                    is_interrupted = True
                    query.stop()
        except StreamingQueryException as error:
            # An interrupted batch can fail with any error. The next run repeats it.
            if not is_interrupted:
                raise (self._error or _told(error)) from error
        finally:
            query.stop()
            self._report_dropped(query)
        if not self.is_stopped():
            self._read_to = ends
        return self._commits[-1] if self._commits else None

    def _start(self) -> StreamingQuery:
        streams: dict[Input, DataFrame] = {
            TopicInput(name): self.stream(name) for name in self.derivation.topics
        }
        if self.derivation.tables:
            if len(streams) > 1:
                raise QueryNotUsable(
                    "the query joins several topics with tables",
                    where=f"[derived.{self.derivation.name}]",
                    expected="one topic with tables, or topics alone",
                    remedy="Join the topics in one derived table, and join that table in a second one.",
                )
            (stream,) = streams.values()
            apply: Callable[[DataFrame, int], None] = self._apply_with_tables
        else:
            with result_of(self.spark, self.derivation, streams) as stream:
                check_result(stream, self.derivation.key)
            apply = self._apply
        return (
            stream.writeStream.queryName(f"derived {self.derivation.name}")
            .foreachBatch(self._keeping_error(apply))
            .outputMode("update")
            .option("checkpointLocation", self._checkpoint(self._generation))
            .trigger(availableNow=True)
            .start()
        )

    def _keeping_error(self, apply: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        """Return the same function that also keeps its error, which Spark only passes on as a text."""

        def applied(rows: DataFrame, batch: int) -> None:
            try:
                apply(rows, batch)
            except BaseException as error:
                self._error = error
                raise

        return applied

    def _apply(self, rows: DataFrame, batch: int) -> None:
        """Write the rows of a batch, unless they are in the table."""
        record = self.table.record
        if record is not None and self._is_current(record) and batch <= (record.batch or 0):
            # Spark's groups and windows take in the batch only if somebody asks for its rows.
            rows.count()
            return
        new = Record(
            self.derivation.digest,
            self.table.next_number,
            generation=self._generation,
            batch=batch,
            offsets=self._offsets(batch),
        )
        keyed = last_of_each_key(table_rows(rows, self.derivation.key, new.number)).persist()
        try:
            events = keyed.count()
            is_first = record is None or not self._is_current(record)
            if events == 0 and not is_first:
                return
            topic = self._kafka_topics[0]
            stored = self.table.columns()
            is_replaced = is_first and stored is not None
            told = replacement(keyed, self.table.hudi.read(), new.number) if is_replaced else keyed
            self.outputs.write_changes(told)
            self.outputs.write_batch(keyed, self._generation, batch)
            if is_first or stored is None or not stored.is_same(columns_of(keyed)):
                committed = self.table.become(keyed, new, topic, events)
                if committed is None:
                    # The rows of the last generation are those of this one's first batch.
                    self.table.record = replace(new, number=new.number - 1)
                self._forget_earlier_checkpoints()
            else:
                committed = self.table.write(keyed, new, topic, events)
        finally:
            keyed.unpersist()
        if committed is not None:
            self._commits.append(committed)
            self.progress.write(committed)

    def _apply_with_tables(self, events: DataFrame, batch: int) -> None:
        """Run the query over a batch's events and the tables as they are now."""
        spark = events.sparkSession
        (topic,) = self.derivation.topics
        frames: dict[Input, DataFrame] = {
            one: without_hudi(self.inputs.state(one).rows(spark)) for one in self.derivation.tables
        }
        frames[TopicInput(topic)] = events.persist()
        try:
            with result_of(spark, self.derivation, frames) as result:
                self._check_row_by_row(result)
                check_result(result, self.derivation.key)
                self._apply(result, batch)
        finally:
            events.unpersist()

    def _check_row_by_row(self, result: DataFrame) -> None:
        plan = str(result._jdf.queryExecution().analyzed().toString())
        if any(
            f"{node}" in line.lstrip(" :+-")[: len(node)] for line in plan.splitlines() for node in _GROUPING
        ):
            raise QueryNotUsable(
                "the query groups events and also reads a table",
                where=f"[derived.{self.derivation.name}]",
                expected="either groups or windows of events, or a join of each event with tables",
                remedy="Join in one derived table, and group that table in a second one.",
            )

    def _is_of_query(self, record: Record) -> bool:
        return record.digest == self.derivation.digest and record.generation is not None

    def _is_current(self, record: Record) -> bool:
        return self._is_of_query(record) and record.generation == self._generation

    def _checkpoint(self, generation: int) -> str:
        return f"{self.checkpoints}/{self.derivation.name}/{generation}-{self.derivation.digest}"

    def _checkpoint_exists(self, generation: int) -> bool:
        return TableFiles(self.spark, self._checkpoint(generation)).exists("metadata")

    def _forget_earlier_checkpoints(self) -> None:
        folder = TableFiles(self.spark, f"{self.checkpoints}/{self.derivation.name}")
        for entry in folder.list(""):
            generation = entry.name.partition("-")[0]
            if generation.isdigit() and int(generation) < self._generation:
                folder.remove_folder(entry.name)

    def _offsets(self, batch: int) -> Mapping[str, Mapping[str, int]]:
        """Return the offsets up to which the batch reads. Spark has written them before the batch."""
        lines = TableFiles(self.spark, self._checkpoint(self._generation)).read(f"offsets/{batch}").decode()
        found: dict[str, dict[str, int]] = {}
        for line in lines.splitlines()[2:]:
            if line.startswith("{"):
                for topic, offsets in json.loads(line).items():
                    if topic in self._kafka_topics:
                        found.setdefault(topic, {}).update(offsets)
        return found

    def _report_dropped(self, query: StreamingQuery) -> None:
        """Report how many events came too late, and how many could not be read."""
        late, unreadable = dropped_events(query.recentProgress, self.derivation.topics)
        if late or unreadable:
            self.progress.write(EventsDropped(str(self.table.name), late, unreadable))

    @property
    def _kafka_topics(self) -> tuple[str, ...]:
        return tuple(self.topics[name] for name in self.derivation.topics)


class TopicMissing(InputMissing):
    """A topic that Kafka does not have yet."""


def dropped_events(progress: list[Any], topics: tuple[str, ...]) -> tuple[int, int]:
    """Return how many rows came after the watermark, and how many events were unreadable."""
    late = sum(
        int(operator.get("numRowsDroppedByWatermark") or 0)
        for one in progress
        for operator in one.get("stateOperators") or ()
    )
    observed = [
        (one.get("observedMetrics") or {}).get(observation_of(name)) for one in progress for name in topics
    ]
    return late, sum(int(one.get("unreadable") or 0) for one in observed if one)


def _told(error: StreamingQueryException) -> TributaryError:
    found = str(error).partition("\n")[0]
    return TributaryError("Spark could not read the events", found=found)
