"""The steps that exist in plain PySpark and in Java, and which of the two the app uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_app.steps.buckets import Buckets
from spark_app.steps.found_changes import Applied, ChangeCounter
from spark_app.steps.payloads import ClosedStruct, ReadableShape
from spark_app.steps.row_upsert import RowUpsert

Name = Literal["plain", "accelerated"]


class Projections(Protocol):
    """Successive selects. Any session can apply them, any number of times."""

    def apply(self, rows: DataFrame) -> DataFrame:
        """Do the same as `rows.where(needed.isNotNull()).select(…).select(…)`."""


class Steps(Protocol):
    """The steps. Both implementations give the same results."""

    @property
    def name(self) -> Name: ...

    def read_kafka_events(
        self,
        spark: SparkSession,
        consumer: Mapping[str, str],
        topic: str,
        ranges: Iterable[tuple[int, int, int]],
        tasks: int,
        headers: Sequence[str],
        event: StructType,
    ) -> DataFrame:
        """Return the records at some offsets of a topic, in no order. No Spark job.

        `ranges` are (partition, first offset, offset after the last). `consumer` are the properties of a
        consumer of bytes, with Kafka's names. At least `tasks` tasks read the records, if there are that many
        records.

        The result has the columns of `event`, whose types must be: topic `string`, partition `int`, offset
        `bigint`, timestamp `timestamp`, key `binary`, value `binary`, then a `binary` for each of the
        headers. That is the last header of the name, null if a record has none. A task fails if the topic no
        longer holds an offset."""

    def read_bronze_events(
        self, landed: DataFrame, topic: str, ranges: Iterable[tuple[int, int, int]], event: StructType
    ) -> DataFrame:
        """Return the landed records of the topic that are in the ranges, in no order. No Spark job.

        `ranges` are (partition, first offset, offset after the last). `landed` is a scan of an Iceberg table,
        which may be filtered. Its columns are k_topic `string`, k_partition `int`, k_offset `bigint`,
        k_timestamp `bigint` (milliseconds), key `binary` and value `binary`. The columns moved_to `binary`
        and moved_from `binary` exist as soon as a record has needed them.

        The result has the columns of `event`, whose types must be: topic `string`, partition `int`, offset
        `bigint`, timestamp `timestamp`, key, value, moved_to and moved_from `binary`."""

    def topics_in_metadata(self, spark: SparkSession, table: str, /) -> frozenset[str] | None:
        """Return the topics with rows in bronze, the table with this full name. No Spark job.

        Returns None if the files' metadata do not say, and the rows have to be read."""

    def offsets_in_metadata(
        self, spark: SparkSession, table: str, topics: Collection[str], /
    ) -> Mapping[str, Mapping[int, tuple[int, int]]]:
        """Return the first and the last offset by topic and partition. No Spark job.

        A topic is left out if the files' metadata do not say, and the rows have to be read."""

    def schema_and_payload(
        self, text: Column, known: Sequence[str], examples: Sequence[bytes] = ()
    ) -> Column:
        """Return `struct<known int, schema string, payload string>`, null if the text is no JSON object.

        known    the place of the document's schema in `known`; null if it is another one. Schemas are equal
                 if their JSON is, whatever their white space and the order of their names
        schema   the schema in its canonical form; null if the document has none
        payload  the JSON of the payload as it is written; null if it is JSON's null. A document that is
                 neither `{"schema":…,"payload":…}` nor `{"payload":…}` is itself the payload

        `examples` are documents with known schemas. Documents that begin like one of them may be read faster.
        """

    def canonical(self, schema: str) -> str:
        """Return the canonical form of a schema, which is the same for all of its texts."""

    def open_payload(self, text: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
        """Return what `read_payload` takes of the text.

        `read_payload` uses it many times. So select it before, where its cost matters."""

    def read_payload(self, opened: Column, wire: StructType, closed: ClosedStruct | None = None) -> Column:
        """Return `struct<payload, problem string, has_unnamed boolean>`, null if the text was null.

        `opened` is the result of `open_payload` with the same `wire` and `closed`. `payload` is null if the
        text is not UTF-8 or is no JSON object. A value in it is null if it has another type than in `wire`.
        `problem` is `not_utf8` or `mismatch` in these cases, otherwise null."""

    def open_shape(self, text: Column, shapes: Sequence[ReadableShape]) -> Column:
        """Return what `read_shape` takes of the text. Select it before, as the result of `open_payload`."""

    def read_shape(self, opened: Column, shapes: Sequence[ReadableShape]) -> Column:
        """Return a struct with a field for each shape, by its name.

        `opened` is the result of `open_shape` with the same shapes.
        The field of the first shape that the payload has is the result of `read_payload`. All other fields
        are null. The struct is null if the text is no JSON object or has none of the shapes."""

    def inflated(self, compressed: Column) -> Column:
        """Return the bytes before their compression by zlib; null if they are not what zlib writes.

        Null, too, if they are more than 512 MiB."""

    def limited_avro(self, avro: Column) -> Column:
        """Return the same bytes. Avro's reader takes no more memory for them than `AVRO_LIMITS` allow.

        In plain PySpark this is certain only where the driver reads them, as on one machine."""

    def projections(self, rows: StructType, needed: str, steps: Sequence[Sequence[Column]], /) -> Projections:
        """Return the projections of rows of that type, of those whose column `needed` is not null.

        `steps` are the columns of each select, of the columns of the one before. A step cannot have a window,
        an aggregate or a generator."""

    def change_counter(self, applied: Mapping[int, Applied]) -> ChangeCounter:
        """Return a counter that compares changes with what was applied, by partition."""

    def partial_fold(self, changes: DataFrame) -> DataFrame:
        """Return the changes that the fold of the whole batch can need. No Spark job.

        A task may drop a change if a complete change of the same key follows it both in the topic and in the
        source. Do not use it for a batch in which a primary key changed, or if deletes need the row's values.
        `changes` have at least the columns that `ChangeCounter` lists."""

    def buckets(self, spark: SparkSession, hash_field: str, buckets: int, tasks: int, /) -> Buckets | None:
        """Return the buckets of a table whose record key is the column `hash_field`.

        Returns None if Spark and Hudi have to shuffle the rows as they need them."""

    def row_upsert(self, spark: SparkSession, table: str, /) -> RowUpsert | None:
        """Return a writer for the table with this name; None if Hudi's own data source has to write it."""


class _Chosen:
    steps: Steps | None = None


def use(steps: Steps) -> None:
    """Let the whole process use these steps from now on."""
    _Chosen.steps = steps


def steps() -> Steps:
    """Return the steps that the process uses."""
    if _Chosen.steps is None:
        raise RuntimeError("Nothing has chosen between the plain and the accelerated steps yet (steps.use)")
    return _Chosen.steps
