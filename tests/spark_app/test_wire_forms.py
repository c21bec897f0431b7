"""A table is the same for every form in which a connector sent and a sink kept the events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, FloatType, TimestampNTZType, TimestampType

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources import files
from spark_app.sources.event import OffsetRange
from spark_app.sources.file_layouts import UnreadableFiles
from spark_app.sources.files import FilesSource, TableUndescribed
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.sink_records import RecordsOfForms
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app import debezium
from tests.spark_app.test_recorded_events import (
    Recorded,
    apply_all,
    holds_what_the_lake_cannot,
    ingest_of,
    recorded,
)
from tests.spark_app.wire_forms import bare, converted, write_avro, write_lines
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.contract.source import Events
from tributary.contract.table_name import TableName

TOPIC = "tickit.shop.public.listing"
LISTING = """
[lake]
name = "tickit"

[source.shop]
engine = "postgres"
database = "tickit"
tables = ["public.*"]

[table."shop.public.listing"]
storage = "copy_on_write"
key = ["listid"]

[table."shop.public.listing".columns]
listid = "integer"
sellerid = "int"
eventid = "int"
dateid = "integer"
numtickets = "smallint"
priceperticket = "numeric(8,2)"
totalprice = "decimal(38, 10)"
listtime = "timestamp"
note = "text"
details = "jsonb"
tags = "text[]"
seen = "timestamptz"
opens = "time"
day = "date"
ref = "uuid"
active = "bool"
weight = "double precision"
score = "real"
big = "bigint"
raw = "bytea"
span = "text"
free = "numeric"
codes = "int[]"
venue_note = "text"
"""
DESCRIBED = parse_lake(LISTING).policy(TableName.parse("shop.public.listing"))
ONLY_KEY = DESCRIBED.model_copy(update={"columns": None})
AS_OURS = Events()
REWRITTEN = {"delete.tombstone.handling.mode": "rewrite"}
ALL_PLACES = {
    **REWRITTEN,
    "add.fields": "op,table,lsn,source.ts_ms,source.ts_us,source.snapshot,source.sequence,source.txId",
}
ONLY_OPERATIONS = {**REWRITTEN, "add.fields": "op,lsn"}

AS_TEXT = (DateType, TimestampType, TimestampNTZType, DoubleType, FloatType)
"""Python has no infinite dates, and its NaN does not equal itself."""

WITH_INFINITIES = 9
"""JsonConverter, which makes most of the forms here, does not read this row back as it wrote it.

NaN and infinities become 0."""

Rows = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Kept:
    """The events that a sink keeps: at most `PER_FILE` in a file, without tombstones and keys.

    `offsets` are the events' offsets in Kafka."""

    offsets: Sequence[int]
    values: Sequence[bytes]

    def files(self) -> Iterator[tuple[int, int, Sequence[bytes]]]:
        """Yield first offset, last offset and values. Like sinks, use another file for each schema."""
        pairs = list(zip(self.offsets, self.values, strict=True))
        for _, group in groupby(pairs, key=lambda pair: pair[1].partition(b',"payload":')[0]):
            same = list(group)
            for start in range(0, len(same), PER_FILE):
                cut = same[start : start + PER_FILE]
                yield cut[0][0], cut[-1][0], [value for _, value in cut]


PER_FILE = 7


def confluent(bucket: Path, extension: str, first: int) -> Path:
    name = f"{TOPIC}+0+{first:010}.{extension}"
    return bucket / "topics" / TOPIC / "year=2026" / "month=11" / name


def lines_with_schemas(_jvm: Any, bucket: Path, kept: Kept) -> None:
    for first, _, values in kept.files():
        write_lines(confluent(bucket, "json", first), values)


def gzipped_lines_without_schemas(_jvm: Any, bucket: Path, kept: Kept) -> None:
    for first, _, values in kept.files():
        write_lines(bucket / f"{TOPIC}-0-{first}.gz", map(bare, values))


def lines_of_aiven_s_envelopes(_jvm: Any, bucket: Path, kept: Kept) -> None:
    for first, _, values in kept.files():
        write_lines(bucket / f"{TOPIC}-0-{first}.gz", (b'{"value":%b}' % bare(value) for value in values))


def lines_whose_decimals_are_bytes(jvm: Any, bucket: Path, kept: Kept) -> None:
    options = {"decimal.format": "BASE64", "schemas.enable": "false"}
    in_base64 = replace(kept, values=list(converted(jvm, TOPIC, kept.values, None, **options)))
    for first, _, values in in_base64.files():
        write_lines(confluent(bucket, "json.gz", first), values)


def avro_envelopes(jvm: Any, bucket: Path, kept: Kept) -> None:
    for first, _, values in kept.files():
        write_avro(jvm, confluent(bucket, "avro", first), values)


def unwrapped_lines(jvm: Any, bucket: Path, kept: Kept) -> None:
    unwrapped = replace(kept, values=list(converted(jvm, TOPIC, kept.values, ALL_PLACES)))
    for first, _, values in unwrapped.files():
        write_lines(confluent(bucket, "json", first), values)


def unwrapped_lines_without_schemas(jvm: Any, bucket: Path, kept: Kept) -> None:
    options = {"schemas.enable": "false"}
    unwrapped = replace(kept, values=list(converted(jvm, TOPIC, kept.values, ONLY_OPERATIONS, **options)))
    for first, _, values in unwrapped.files():
        write_lines(confluent(bucket, "json", first), values)


def unwrapped_avro_of_lenses(jvm: Any, bucket: Path, kept: Kept) -> None:
    """Lenses names its files after their last event."""
    unwrapped = replace(kept, values=list(converted(jvm, TOPIC, kept.values, ALL_PLACES)))
    for _, last, values in unwrapped.files():
        write_avro(jvm, bucket / "lake" / TOPIC / "0" / f"{last:012}.avro", values)


Sink = Callable[[Any, Path, Kept], None]
FORMS: dict[Sink, tuple[TablePolicy, Events]] = {
    lines_with_schemas: (ONLY_KEY, AS_OURS),
    gzipped_lines_without_schemas: (DESCRIBED, AS_OURS),
    lines_of_aiven_s_envelopes: (DESCRIBED, AS_OURS),
    lines_whose_decimals_are_bytes: (DESCRIBED, Events(decimals="base64")),
    avro_envelopes: (ONLY_KEY, Events(decimals="base64")),
    unwrapped_lines: (ONLY_KEY, AS_OURS),
    unwrapped_lines_without_schemas: (DESCRIBED, AS_OURS),
    unwrapped_avro_of_lenses: (ONLY_KEY, AS_OURS),
}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    table = ingest_of(spark, tmp_path_factory.mktemp("expected"), recorded_events(), ONLY_KEY)
    apply_all(table, 1000)
    return rows_of(table)


@pytest.mark.parametrize("sink", first_then_long(FORMS, 2), ids=lambda sink: sink.__name__)
def test_every_form_gives_the_table_that_envelopes_with_schemas_give(
    spark: SparkSession, jvm: Any, tmp_path: Path, expected: Rows, sink: Sink
) -> None:
    policy, written = FORMS[sink]
    sink(jvm, tmp_path / "bucket", kept())
    table = ingest_files(spark, tmp_path, policy, written)

    apply_all(table, 1000)

    of_kept = expected_of_kept(expected)
    # The transform writes a column's default where its value is NULL.
    as_sent = of_kept | {3: of_kept[3] | {"note": "none"}} if "unwrapped" in sink.__name__ else of_kept
    assert rows_of(table) == as_sent


def test_a_run_resumes_where_the_last_run_ended_within_a_file_or_at_the_next_one(
    spark: SparkSession, jvm: Any, tmp_path: Path, expected: Rows
) -> None:
    avro_envelopes(jvm, tmp_path / "bucket", kept())
    table = ingest_files(spark, tmp_path, ONLY_KEY)
    end = table.source.extents(frozenset({TOPIC}))[TOPIC].end[0]

    for first, until in pairwise((0, 24, end)):
        assert table.ledger.positions.get(0, 0) == first
        table.apply((OffsetRange(0, first, until),))
        table = ingest_files(spark, tmp_path, ONLY_KEY)

    assert rows_of(table) == expected_of_kept(expected)
    held = table.source.extents(frozenset({TOPIC}))[TOPIC]
    assert table.pending(held, 1000) == ()


def test_events_without_schemas_are_read_from_kafka_too(
    spark: SparkSession, tmp_path: Path, expected: Rows
) -> None:
    sent = [replace(e, key=e.key and bare(e.key), value=e.value and bare(e.value)) for e in recorded_events()]
    table = ingest_of(spark, tmp_path, sent, DESCRIBED)

    apply_all(table, 1000)

    assert rows_of(table) == expected


def test_a_row_with_a_column_that_the_lake_file_does_not_name_waits_in_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    policy = DESCRIBED.model_copy(
        update={"columns": tuple(c for c in DESCRIBED.columns or () if c[0] != "venue_note")}
    )
    gzipped_lines_without_schemas(None, tmp_path / "bucket", kept())
    table = ingest_files(spark, tmp_path, policy)

    apply_all(table, 1000)

    reasons = spark.read.parquet(f"{table.quarantine_path}/*").select("reason").distinct().collect()
    assert [row["reason"] for row in reasons] == ["unnamed_column"]
    assert 40 not in {row["listid"] for row in table.hudi.read().select("listid").collect()}


def test_missing_facts_and_missing_files_stop_the_table_with_a_clear_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    gzipped_lines_without_schemas(None, tmp_path / "bucket", kept())
    for policy, missing in ((ONLY_KEY, "the table's columns"), (TablePolicy(), "name the table's")):
        with pytest.raises(TableUndescribed, match=missing):
            apply_all(ingest_files(spark, tmp_path, policy), 1000)

    (tmp_path / "bucket" / f"{TOPIC}-0-{PER_FILE}.gz").unlink()
    with pytest.raises(UnreadableFiles, match="Events are missing"):
        apply_all(ingest_files(spark, tmp_path, DESCRIBED), 1000)


def test_a_file_that_changes_during_a_run_is_an_error_and_not_a_loss(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LISTING_SECONDS", 0.0)
    path, values = confluent(tmp_path / "bucket", "json", 0), kept().values
    write_lines(path, values[:2])
    table = ingest_files(spark, tmp_path, ONLY_KEY)
    apply_all(table, 1000)

    write_lines(path, values[:3])

    with pytest.raises(UnreadableFiles, match="has changed"):
        apply_all(table, 1000)
    again = ingest_files(spark, tmp_path, ONLY_KEY)
    apply_all(again, 1000)
    assert again.hudi.read().count() == 3


def expected_of_kept(expected: Rows) -> Rows:
    return {key: row for key, row in expected.items() if key != WITH_INFINITIES}


def recorded_events() -> list[Recorded]:
    """Real events of the table with a column of most types."""
    listing = [e for e in recorded() if e.table == "listing" and not holds_what_the_lake_cannot(e)]
    return _numbered(e for e in listing if e.value is None or e.value.startswith(b'{"schema'))


def kept() -> Kept:
    mark = f'"after":{{"listid":{WITH_INFINITIES},'.encode()
    events = _numbered(e for e in recorded_events() if mark not in (e.value or b""))
    offsets, values = zip(*((e.offset, e.value) for e in events if e.value is not None), strict=True)
    return Kept(offsets, values)


def _numbered(events: Iterable[Recorded]) -> list[Recorded]:
    """Number the events as Kafka would."""
    return [replace(event, offset=offset) for offset, event in enumerate(events)]


def ingest_files(
    spark: SparkSession, folder: Path, policy: TablePolicy, written: Events = AS_OURS, topic: str = TOPIC
) -> TableIngest:
    return TableIngest(
        name=TOPIC,
        topic=topic,
        source=FilesSource(spark, str(folder / "bucket"), RecordsOfForms(), lambda _: policy),
        hudi=HudiTable(spark, str(folder / "silver"), "listing", policy),
        quarantine_path=str(folder / "quarantine"),
        form=TopicForm(PostgresLog(), written=written),
    )


def rows_of(table: TableIngest) -> Rows:
    """Return the values of the source's columns, and the last operation, by key."""
    found = table.hudi.read()
    as_text = {field.name for field in found.schema if isinstance(field.dataType, AS_TEXT)}
    columns = [
        F.col(name).cast("string").alias(name) if name in as_text else F.col(name)
        for name in ("_op", *(name for name, _ in DESCRIBED.columns or ()))
    ]
    rows = found.select(*columns).collect()
    return {row["listid"]: row.asDict(recursive=True) for row in rows}


def test_a_changed_key_is_found_by_its_place_where_the_headers_that_mark_it_are_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    things = debezium.SourceTable()
    things.begin()
    for key in (1, 2):
        things.insert(key, f"row {key}", "large" * key)
    things.commit()
    things.begin()
    things.move(2, 3)
    things.move(1, 2)
    things.commit()
    values = [event.value for event in things.events if event.value is not None]
    write_lines(tmp_path / "bucket" / f"{debezium.TOPIC}-0-0.gz", values)
    table = ingest_files(spark, tmp_path, TablePolicy(key=("id",)), topic=debezium.TOPIC)

    apply_all(table, 1000)

    rows = table.hudi.read().collect()
    assert {row["id"]: (row["name"], row["body"]) for row in rows} == {
        key: (row["name"], row["body"]) for key, row in things.rows.items()
    }
