"""Read events from the files that an S3 sink of Confluent, Aiven or Lenses wrote to a bucket."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from threading import RLock
from typing import Any, ClassVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from spark_app.sources.file_layouts import (
    EventFile,
    FileCount,
    FileName,
    FileStatus,
    Layout,
    Span,
    UnreadableFiles,
    check_complete,
    check_single,
    find_layout,
    spans,
)
from spark_app.sources.sink_records import SinkRecords
from tributary.contract.errors import TributaryError, told_by
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import EditLakeFile

LISTING_SECONDS = 10.0
"""How long a listing is reused. Listing a large bucket is slow, and sinks write a file every few minutes."""

_AVRO_MAGIC = b"Obj\x01"
_DAMAGE = re.compile(
    r"java\.io\.EOFException|Not an Avro data file|Not a data file|Invalid sync|ZipException|not a gzip file"
)


class TableUndescribed(TributaryError):
    """The lake file lacks facts about a table that its files do not contain either."""


@dataclass
class FilesSource:
    """The files below `location`, a folder or a bucket with a prefix.

    records      turns the contents of files into the values of events
    policy_of    returns the lake file's policy for a topic's table
    allows_gaps  treat offsets that are in no file as offsets without an event
    """

    keeps_headers: ClassVar[bool] = False

    spark: SparkSession
    location: str
    records: SinkRecords
    policy_of: Callable[[str], TablePolicy]
    allows_gaps: bool = False
    _lock: RLock = field(default_factory=RLock, repr=False)
    _listed: _Listing | None = field(default=None, repr=False)
    _counts: dict[FileName, FileCount] = field(default_factory=dict, repr=False)
    _kinds: dict[str, str] = field(default_factory=dict, repr=False)
    _changes: dict[str, UnreadableFiles] = field(default_factory=dict, repr=False)
    _described: set[str] = field(default_factory=set, repr=False)
    _avro_schemas: dict[str, str] = field(default_factory=dict, repr=False)

    def topics(self) -> frozenset[str]:
        return frozenset(file.topic for file in self._listing().files)

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        return {topic: self._extent(topic) for topic in topics}

    def _extent(self, topic: str) -> TopicExtent:
        try:
            partitions = self._spans(topic)
        except UnreadableFiles as error:
            # The other topics can be read.
            return TopicExtent({}, {}, problem=error)
        beginning = {partition: 0 if self.allows_gaps else s[0].first for partition, s in partitions.items()}
        return TopicExtent(beginning, {p: s[-1].until for p, s in partitions.items()})

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        """Read the events of the ranges.

        Raises `UnreadableFiles` if the files do not contain all events, and `TableUndescribed`.
        """
        partitions = self._spans(topic)
        if topic in self._changes:
            raise self._changes[topic]
        wanted = [span for r in ranges for span in partitions[r.partition] if _overlap(span, r)]
        if not wanted:
            return self.spark.createDataFrame([], EVENT)
        files = [span.file for span in wanted]
        self._check_described(topic, files)
        for r in ranges:
            check_single(span.file for span in partitions[r.partition])
        before = (span.before for span in wanted if span.before is not None and not self.allows_gaps)
        counts = self._count({*files, *before})  # Names a file that is damaged. A later job could not.
        if not self.allows_gaps:
            for span in wanted:
                check_complete(self._listing().layout, span, counts)
        return self._events(topic, files, ranges)

    def _events(self, topic: str, files: Sequence[EventFile], ranges: tuple[OffsetRange, ...]) -> DataFrame:
        of_file = Window.partitionBy("file")
        row = F.row_number().over(of_file.orderBy("block", "number"))
        named = self._in_name(3).cast("bigint")
        names_last = self._listing().layout.names_last
        before = named - F.count("*").over(of_file) if names_last else named - 1
        values: dict[str, Column] = {
            "topic": F.lit(topic),
            "partition": self._in_name(2),
            "offset": before + row,
            "value": F.col("value"),
        }
        numbered = self._records(files).select(
            *[values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in EVENT.fields]
        )
        in_ranges = [
            (F.col("partition") == r.partition) & (F.col("offset") >= r.first) & (F.col("offset") < r.until)
            for r in ranges
        ]
        return numbered.where(reduce(lambda a, b: a | b, in_ranges))

    def _records(self, files: Sequence[EventFile]) -> DataFrame:
        """Return the records of the files, as `SinkRecords` reads them."""
        lines = [file.path for file in files if self._kind(file) == "json"]
        by_schema: dict[str, list[str]] = {}
        for file in files:
            if self._kind(file) == "avro":
                by_schema.setdefault(self._avro_schema(file), []).append(file.path)
        parts = [self._lines(lines)] if lines else []
        parts += [
            self.records.read_avro(self._reader(), paths, schema) for schema, paths in by_schema.items()
        ]
        return reduce(DataFrame.unionAll, parts)

    def _lines(self, paths: list[str]) -> DataFrame:
        may_wrap_values = self._listing().layout.may_wrap_values
        return self.records.read_lines(self._reader(), paths, may_wrap_values=may_wrap_values)

    def _reader(self) -> DataFrameReader:
        # Otherwise Spark would turn folders such as partition=0 into columns.
        return self.spark.read.option("recursiveFileLookup", "true")

    def _spans(self, topic: str) -> Mapping[int, tuple[Span, ...]]:
        listing = self._listing()
        partitions: dict[int, list[EventFile]] = {}
        for file in listing.files:
            if file.topic == topic:
                partitions.setdefault(file.partition, []).append(file)
        by_offset = {p: sorted(files, key=lambda file: file.offset) for p, files in partitions.items()}
        counts = self._count(files[0 if listing.layout.names_last else -1] for files in by_offset.values())
        return {partition: spans(listing.layout, files, counts) for partition, files in by_offset.items()}

    def _count(self, files: Iterable[EventFile]) -> Mapping[FileName, FileCount]:
        """Return the counts of a topic's files. One Spark job counts the new ones."""
        with self._lock:
            new = [file for file in files if file.name not in self._counts]
            if new:
                self._add_counts(new)
            return self._counts

    def _add_counts(self, files: Sequence[EventFile]) -> None:
        try:
            counted = self._counted(files)
        except (Py4JError, PySparkException) as error:
            if not _is_damage(error):
                raise
            if len(files) == 1:
                raise _damaged(files[0], error) from error
            # Spark does not say which file it was.
            middle = len(files) // 2
            self._add_counts(files[:middle])
            self._add_counts(files[middle:])
        else:
            self._counts |= {file.name: FileCount(0, 0) for file in files} | counted

    def _counted(self, files: Sequence[EventFile]) -> dict[FileName, FileCount]:
        """Return the counts of those files of a topic that have events."""
        partition, offset = self._in_name(2).cast("int"), self._in_name(3).cast("bigint")
        described = self.records.described(self._records(files))
        counted = described.groupBy(partition.alias("partition"), offset.alias("offset")).agg(
            F.count("*").alias("events"), F.count_if("is_delete").alias("deletes")
        )
        return {
            FileName(files[0].topic, row["partition"], row["offset"]): FileCount(
                row["events"], row["deletes"]
            )
            for row in counted.collect()
        }

    def _in_name(self, group: int) -> Column:
        return F.regexp_extract("file", self._listing().layout.pattern, group)

    def _check_described(self, topic: str, files: Sequence[EventFile]) -> None:
        if topic in self._described:
            return
        policy = self.policy_of(topic)
        if policy.key is None:
            raise TableUndescribed(
                what="Files contain no keys, and the lake file does not name the table's key",
                where=f"topic {topic} in {self.location}",
                expected='key = ["…"] in the table\'s entry',
                remedy=EditLakeFile("set the table's key to the columns of its primary key"),
            )
        lines = [file for file in files if self._kind(file) == "json"]
        if policy.columns is None and lines and self._has_no_schemas(lines[0]):
            raise TableUndescribed(
                what="The events come without schemas, and the lake file does not name the table's columns",
                where=lines[0].path,
                expected='columns = { id = "bigint", … } in the table\'s entry',
                remedy=EditLakeFile("list all columns of the table with their types"),
            )
        self._described.add(topic)

    def _has_no_schemas(self, file: EventFile) -> bool:
        records = self.records.described(self._lines([file.path]))
        (found,) = records.agg(F.bool_or("lacks_schema")).collect()
        return bool(found[0])

    def _listing(self) -> _Listing:
        """Return a listing that is at most a few seconds old."""
        with self._lock:
            before, now = self._listed, time.monotonic()
            if before is not None and now - before.at < LISTING_SECONDS:
                return before
            layout, files = find_layout(self.location, self._statuses())
            if not files:
                raise UnreadableFiles(
                    what="There are no files of events", where=self.location, remedy="Name another folder."
                )
            if before is not None:
                self._note_changes(before.files, files)
            self._listed = _Listing(layout, files, time.monotonic())
            return self._listed

    def _note_changes(self, before: Iterable[EventFile], now: Iterable[EventFile]) -> None:
        statuses = {file.status.uri: file.status for file in before}
        for file in now:
            status = statuses.get(file.status.uri, file.status)
            if status != file.status:
                # Count again to notice events that were added to the file.
                self._counts.pop(file.name, None)
                self._changes[file.topic] = _changed(status, file.status)

    def _statuses(self) -> list[FileStatus]:
        path, file_system = self._hadoop(self.location)
        if not file_system.exists(path):
            return []
        found, statuses = file_system.listFiles(path, True), []
        while found.hasNext():
            status = found.next()
            uri = str(status.getPath().toUri().toString())
            statuses.append(FileStatus(uri, int(status.getLen()), int(status.getModificationTime())))
        return statuses

    def _kind(self, file: EventFile) -> str:
        if file.kind is not None:
            return file.kind
        with self._lock:
            if file.status.uri not in self._kinds:
                path, file_system = self._hadoop(file.path)
                opened = file_system.open(path)
                try:
                    start = bytes(opened.read() & 0xFF for _ in _AVRO_MAGIC)
                finally:
                    opened.close()
                self._kinds[file.status.uri] = "avro" if start == _AVRO_MAGIC else "json"
            return self._kinds[file.status.uri]

    def _avro_schema(self, file: EventFile) -> str:
        with self._lock:
            if file.status.uri not in self._avro_schemas:
                avro, (path, _) = self._jvm.org.apache.avro, self._hadoop(file.path)
                try:
                    opened = avro.file.DataFileReader(
                        avro.mapred.FsInput(path, self._configuration), avro.generic.GenericDatumReader()
                    )
                except Py4JJavaError as error:
                    if not _is_damage(error):
                        raise
                    raise _damaged(file, error) from error
                try:
                    self._avro_schemas[file.status.uri] = str(opened.getMetaString("avro.schema"))
                finally:
                    opened.close()
            return self._avro_schemas[file.status.uri]

    def _hadoop(self, text: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(text)
        return path, path.getFileSystem(self._configuration)

    @property
    def _configuration(self) -> Any:
        java_context: Any = self.spark.sparkContext._jsc
        return java_context.hadoopConfiguration()

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm


@dataclass(frozen=True)
class _Listing:
    layout: Layout
    files: tuple[EventFile, ...]
    at: float


def _overlap(span: Span, wanted: OffsetRange) -> bool:
    return span.file.partition == wanted.partition and span.first < wanted.until and wanted.first < span.until


def _is_damage(error: Exception) -> bool:
    """Tell whether an error of Java means that a file is cut off, or not of the kind that its name says."""
    text = str(error)
    # A Python process that dies is also the end of what Java reads.
    return _DAMAGE.search(text) is not None and "Python worker" not in text


def _damaged(file: EventFile, error: Exception) -> UnreadableFiles:
    return UnreadableFiles(
        what="A file of events is damaged, so it cannot be read to its end",
        where=file.path,
        found=told_by(error),
        expected="a whole file, as the sink has written it",
        remedy="Copy the file again, and ingest again.",
    )


def _changed(before: FileStatus, now: FileStatus) -> UnreadableFiles:
    """Return the error for a changed file. Sinks write a file once; a change could move known events."""
    return UnreadableFiles(
        what="A file has changed since it was first seen",
        where=now.uri,
        found=f"{now.length} bytes",
        expected=f"{before.length} bytes, with the same modification time",
        remedy="Start again when the sink has finished. The tables keep their positions.",
    )
