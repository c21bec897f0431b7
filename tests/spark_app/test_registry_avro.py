"""Avro that a real converter wrote with a real registry gives the same table as JSON."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import fastavro
import pytest
import requests
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row, SparkSession

from connectors.connect_rest import ConnectorStatus, TaskStatus
from spark_app.columns.table_columns import UnusableColumnName
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.schema_registry.framing import SchemaId, unframed
from spark_app.schema_registry.glue import GlueRegistry
from spark_app.schema_registry.http import ApicurioRegistry, ConfluentRegistry
from spark_app.schema_registry.registry import (
    KeptSchemas,
    RegistryAway,
    RegistryRefused,
    SchemaRegistry,
    SchemaUnknown,
)
from spark_app.sources.bronze_upkeep import BronzeUpkeep
from spark_app.sources.event import OffsetRange
from spark_app.sources.passing_failures import PASSING_FAILURES
from spark_app.table.connector_keys import ConnectorKeyEvents
from spark_app.table.erase import erase_keys
from spark_app.table.quarantine import read_quarantine
from spark_app.table.replay import replay_table
from spark_app.table.table_ingest import TableIngest
from spark_app.wire import schema_versions
from spark_app.wire.topic_form import TopicForm
from tests.parameters import first_then_long
from tests.spark_app import debezium
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.registries import (
    GLUE_REGISTRY,
    REGION,
    AvroWriter,
    Writing,
    converters,
    running_apicurio,
    writings,
)
from tests.spark_app.test_bronze import Bronze, bronze
from tests.spark_app.test_forgetting import land
from tests.spark_app.test_recorded_events import Recorded, apply_all, ingest_of
from tests.spark_app.test_wire_forms import (
    ALL_PLACES,
    ONLY_KEY,
    WITH_INFINITIES,
    Rows,
    expected_of_kept,
    recorded_events,
    rows_of,
)
from tributary.contract.lake import TablePolicy
from tributary.contract.remedies import in_words
from tributary.operations.remedy_words import remedy_words

__all__ = ["bronze"]

pytestmark = pytest.mark.slow

FRAMINGS = {
    "glue": "uuid",
    "glue with zlib": "uuid",
    "confluent": "int32",
    "apicurio": "int32",
    "apicurio's default, in the body": "int64",
}


@dataclass
class Servers:
    """The registries, and a JVM for each kind of converter, which starts when it is first needed."""

    apicurio: str
    glue: str
    stack: ExitStack
    jvms: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def writings(self) -> Mapping[str, Writing]:
        return writings(self.apicurio, self.glue)

    def writer(self, name: str, unwrap: Mapping[str, str] | None = None, **options: bool) -> AvroWriter:
        writing = self.writings[name]
        if writing.kind not in self.jvms:
            self.jvms[writing.kind] = self.stack.enter_context(converters(writing.kind))
        return AvroWriter.of(self.jvms[writing.kind], writing, unwrap, **options)

    def registry(self, name: str) -> SchemaRegistry:
        match self.writings[name].kind:
            case "glue":
                return KeptSchemas(GlueRegistry(REGION, self.glue).schema)
            case "confluent":
                return KeptSchemas(ConfluentRegistry(f"{self.apicurio}/apis/ccompat/v7").schema)
            case "apicurio":
                return KeptSchemas(ApicurioRegistry(self.apicurio).schema)


@pytest.fixture(scope="module")
def servers(glue_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        boto3.client("glue", REGION, endpoint_url=glue_server).create_registry(RegistryName=GLUE_REGISTRY)
        apicurio = stack.enter_context(running_apicurio(tmp_path_factory.mktemp("apicurio")))
        yield Servers(apicurio.address, glue_server, stack)


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    table = ingest_of(spark, tmp_path_factory.mktemp("expected"), recorded_events(), ONLY_KEY)
    apply_all(table, 1000)
    return expected_of_kept(rows_of(table))


def sent() -> list[Recorded]:
    """The recorded events, without those of a row whose infinities JsonConverter does not read back."""
    mark = f'"listid":{WITH_INFINITIES}}}'.encode()
    return [event for event in recorded_events() if mark not in (event.key or b"")]


def as_avro(events: list[Recorded], writer: AvroWriter) -> list[Recorded]:
    written = writer.records(events[0].topic, [(event.key, event.value) for event in events])
    kept = [(event, found) for event, found in zip(events, written, strict=True) if found is not None]
    return [replace(event, key=key, value=value) for event, (key, value) in kept]


@pytest.mark.parametrize("name", first_then_long(FRAMINGS))
def test_each_framing_gives_the_table_that_json_gives(
    spark: SparkSession, tmp_path: Path, servers: Servers, expected: Rows, name: str
) -> None:
    events = as_avro(sent(), servers.writer(name))
    framed = [unframed(value) for event in events for value in (event.key, event.value) if value is not None]
    assert {each and each.schema.framing for each in framed} == {FRAMINGS[name]}

    table = ingest_of(spark, tmp_path, events, TablePolicy(storage="copy_on_write"), servers.registry(name))
    apply_all(table, 1000)

    assert rows_of(table) == expected


def test_unwrapped_rows_give_that_table_too(
    spark: SparkSession, tmp_path: Path, servers: Servers, expected: Rows
) -> None:
    # The transform drops tombstones and truncates.
    events = as_avro(sent(), servers.writer("apicurio", ALL_PLACES))

    table = ingest_of(spark, tmp_path, events, ONLY_KEY, servers.registry("apicurio"))
    apply_all(table, 1000)

    assert rows_of(table) == expected


def test_a_key_in_avro_is_forgotten_in_bronze_silver_and_quarantine(
    bronze: Bronze, tmp_path: Path, servers: Servers
) -> None:
    things = SourceTable(identity="full")
    things.begin()
    for key in (1, 2, 11):
        things.insert(key, f"secret {key}", None)
    things.commit()
    things.begin()
    things.move(11, 3)
    for key in (1, 3):
        things.delete(key)
    things.commit()
    writer = servers.writer("confluent")
    written = list(writer.records(debezium.TOPIC, [(event.key, event.value) for event in things.events]))
    rows = [
        (*event_row(event, offset)[:4], *map(bytearray_of, sent or ()), *event_row(event, offset)[6:])
        for offset, (event, sent) in enumerate(zip(things.events, written, strict=True))
    ]
    rows.append((*rows[0][:2], len(rows), None, rows[0][4], bytearray(b"no event of key 1"), None, None))
    bronze.create()
    land(bronze, rows)
    table = TableIngest(
        name="source.public.things",
        topic=debezium.TOPIC,
        source=bronze.source,
        hudi=HudiTable(bronze.spark, str(tmp_path / "silver"), "things", TablePolicy(deletes="soft")),
        quarantine_path=str(tmp_path / "quarantine"),
        form=TopicForm(PostgresLog(), registry=servers.registry("confluent")),
    )
    table.apply((OffsetRange(0, 0, len(rows)),))

    erased = erase_keys(table, [{"id": "1"}, {"": "3"}, {"id": "4711"}], ConnectorKeyEvents.of(table))

    assert (erased.rows, erased.quarantined, erased.unknown) == (2, 1, ({"id": "4711"},))
    of_keys = [offset for offset, row in enumerate(rows) if row[4] in (rows[0][4], rows[-2][4])]
    assert erased.events == len(of_keys)
    assert [json.loads(key) for key in erased.linked] == [{"id": 11}]
    kept = {row["k_offset"]: (row["key"], row["value"]) for row in upkeep_events(bronze)}
    assert len(kept) == len(rows)
    assert [offset for offset, found in sorted(kept.items()) if found == (None, None)] == of_keys
    left = b" ".join(bytes(value) for _, value in kept.values() if value is not None)
    assert (re.search(rb"secret 1(?!\d)", left), b"secret 2" in left) == (None, True)
    assert [row["id"] for row in table.hudi.read().orderBy("id").collect()] == [2, 11]
    assert read_quarantine(bronze.spark, table.quarantine_path, 0) is None


def upkeep_events(bronze: Bronze) -> list[Row]:
    return BronzeUpkeep(bronze.spark, bronze.table).events(debezium.TOPIC).collect()


def bytearray_of(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)


@pytest.mark.parametrize("name", ["apicurio", "confluent", "glue"])
def test_without_our_transform_each_converter_writes_a_default_for_null(servers: Servers, name: str) -> None:
    with_default = {"type": "string", "optional": True, "default": "none", "field": "note"}
    row = {"type": "struct", "name": "t.Value", "optional": True, "fields": [with_default]}
    schema = {"type": "struct", "name": "t.Envelope", "fields": [{**row, "field": "after"}]}
    value = json.dumps({"schema": schema, "payload": {"after": {"note": None}}}).encode()

    def written(*, keeps_nulls: bool) -> Any:
        writer = servers.writer(name, keeps_nulls=keeps_nulls)
        (record,) = writer.records(f"defaults-{keeps_nulls}", [(None, value)])
        assert record is not None
        found = unframed(record[1] or b"")
        assert found is not None
        assert found.avro is not None
        avro_schema = json.loads(servers.registry(name).schema(found.schema))
        read: Any = fastavro.schemaless_reader(io.BytesIO(found.avro), avro_schema, None)
        return read["after"]["note"]

    assert written(keeps_nulls=False) == "none"
    assert written(keeps_nulls=True) is None


@pytest.mark.parametrize("name", ["apicurio", "confluent"])
def test_a_schema_that_breaks_the_registrys_rule_is_told_with_the_topic_and_what_to_do(
    servers: Servers, name: str
) -> None:
    writer, topic = servers.writer(name), f"refused-{name}"

    def write(kind: str, value: object) -> list[object]:
        fields = [{"type": kind, "field": "id"}]
        row = {"type": "struct", "name": "t.Value", "fields": fields, "field": "after"}
        schema = {"type": "struct", "name": "t.Envelope", "fields": [row]}
        sent = json.dumps({"schema": schema, "payload": {"after": {"id": value}}}).encode()
        return list(writer.records(topic, [(None, sent)]))

    assert write("int32", 1)
    rules = f"{servers.apicurio}/apis/registry/v2/groups/default/artifacts/{topic}-value/rules"
    rule = {"type": "COMPATIBILITY", "config": "BACKWARD"}
    requests.post(rules, json=rule, timeout=30).raise_for_status()
    with pytest.raises(Py4JJavaError) as raised:
        write("string", "x")

    trace = writer.jvm.org.apache.kafka.common.utils.Utils.stackTrace(raised.value.java_exception)
    failed = ConnectorStatus("shop-debezium", "RUNNING", (TaskStatus(0, "FAILED", trace),))
    assert f"{topic}-value" in str(failed.failure)
    told = in_words(failed.remedies, remedy_words)
    assert "to NONE" in told
    assert "tributary up" in told

    requests.put(f"{rules}/COMPATIBILITY", json={**rule, "config": "NONE"}, timeout=30).raise_for_status()
    assert write("string", "x")


def test_a_key_that_is_no_avro_is_taken_from_the_row(
    spark: SparkSession, tmp_path: Path, servers: Servers, expected: Rows
) -> None:
    events = [replace(event, key=None) for event in sent() if not event.moved_to and not event.moved_from]
    moved = {row for event in sent() for row in (event.moved_to, event.moved_from) if row is not None}
    table = ingest_of(
        spark,
        tmp_path,
        [replace(e, offset=i) for i, e in enumerate(as_avro(events, servers.writer("apicurio")))],
        ONLY_KEY,
        servers.registry("apicurio"),
    )
    apply_all(table, 1000)

    gone = {json.loads(key)["listid"] for key in moved}
    assert {k: v for k, v in rows_of(table).items() if k not in gone} == {
        k: v for k, v in expected.items() if k not in gone
    }


def things_of(table: TableIngest) -> dict[int, tuple[Any, ...]]:
    names = [name for name in table.hudi.read().columns if not name.startswith("_")]
    return {row["id"]: tuple(row[name] for name in names) for row in table.hudi.read().collect()}


def events_of(things: SourceTable) -> list[Recorded]:
    return [
        Recorded(debezium.TOPIC, offset, each.key, each.value, each.moved_to, each.moved_from)
        for offset, each in enumerate(things.events)
    ]


def test_a_batch_can_hold_several_schemas_moved_keys_tombstones_and_json(
    spark: SparkSession, tmp_path: Path, servers: Servers
) -> None:
    things = SourceTable()
    for number in range(3):
        things.begin()
        things.insert(10 * number + 1, f"row {number}", "large")
        things.insert(10 * number + 2, f"row {number}", None)
        things.commit()
        things.begin()
        things.move(10 * number + 1, 10 * number + 5)
        things.update(10 * number + 5, "again", "large", body_is_unchanged=True)
        things.delete(10 * number + 2)
        things.commit()
        things.add_column(f"more{number}", "int")
    events = events_of(things)
    json_table = ingest_of(spark, tmp_path / "json", events, TablePolicy())
    apply_all(json_table, 1000)

    avro = as_avro(events, servers.writer("apicurio"))
    mixed = [avro[i] if i % 2 or event.value is None else event for i, event in enumerate(events)]
    for name, written in (("avro", avro), ("mixed", mixed)):
        table = ingest_of(spark, tmp_path / name, written, TablePolicy(), servers.registry("apicurio"))
        apply_all(table, 1000)
        assert things_of(table) == things_of(json_table)
    assert len(things_of(json_table)) == 3


def quarantined(spark: SparkSession, table: TableIngest) -> dict[int, str]:
    found = spark.read.parquet(f"{table.quarantine_path}/*").collect()
    return {row["offset"]: row["reason"] for row in found}


def some_things(count: int = 6) -> list[Recorded]:
    things = SourceTable()
    things.begin()
    for key in range(count):
        things.insert(key, "row", "large")
    things.commit()
    return events_of(things)


def test_damaged_bytes_and_unknown_ids_wait_in_quarantine_with_a_reason(
    spark: SparkSession, tmp_path: Path, servers: Servers
) -> None:
    events = as_avro(some_things(), servers.writer("glue with zlib"))
    values = [event.value or b"" for event in events]
    start = 18
    plain = zlib.decompress(values[0][start:])
    spoiled = [
        values[0],
        values[1][: start + 4],
        values[2][:1] + b"\x00" + values[2][2:start] + plain[:20],
        values[3][:2] + bytes(16) + values[3][start:],
        values[4][:start],
        # Lengths of a gigabyte, for which no memory may be taken.
        values[5][:1] + b"\x00" + values[5][2:start] + b"\x02" + b"\x80\x80\x80\x80\x08" * 9,
        b"\x00\x00\x00\x00\x07" + plain,
    ]
    sent = [replace(events[min(i, 5)], offset=i, value=value) for i, value in enumerate(spoiled)]
    policy = TablePolicy(quarantine_limit="100%")
    table = ingest_of(spark, tmp_path, sent, policy, servers.registry("glue"))

    apply_all(table, 1000)

    assert quarantined(spark, table) == {
        1: "not_avro",
        2: "not_avro",
        3: "unknown_schema_id",
        4: "not_utf8",
        5: "not_avro",
        6: "other_registry",
    }
    assert [row["id"] for row in table.hudi.read().collect()] == [0]


def test_without_a_table_the_reasons_are_the_same(
    spark: SparkSession, tmp_path: Path, servers: Servers
) -> None:
    events = as_avro(some_things(3), servers.writer("apicurio"))
    values = [b"\x00\x7f\xff\xff\xff" + (event.value or b"")[5:] for event in events]
    unknown = [replace(event, value=value) for event, value in zip(events, values, strict=True)]
    policy = TablePolicy(quarantine_limit="100%")
    for folder, registry, reason in (
        ("unknown", servers.registry("apicurio"), "unknown_schema_id"),
        ("none", None, "no_registry"),
    ):
        table = ingest_of(spark, tmp_path / folder, unknown, policy, registry)
        apply_all(table, 1000)
        assert set(quarantined(spark, table).values()) == {reason}


@dataclass
class Flaky:
    """A registry that fails while it has an error, and counts its calls."""

    inner: SchemaRegistry
    error: Exception | None
    asked: list[SchemaId] = field(default_factory=list)

    def schema(self, schema_id: SchemaId) -> str:
        self.asked.append(schema_id)
        if self.error is not None:
            raise self.error
        return self.inner.schema(schema_id)


def test_a_registry_that_is_away_puts_nothing_aside_and_is_asked_once_when_it_is_back(
    spark: SparkSession, tmp_path: Path, servers: Servers
) -> None:
    flaky = Flaky(servers.registry("apicurio"), RegistryAway("no answer"))
    kept = KeptSchemas(flaky.schema)
    table = ingest_of(
        spark, tmp_path, as_avro(some_things(), servers.writer("apicurio")), TablePolicy(), kept
    )
    for error in (RegistryAway("no answer"), RegistryRefused("a wrong login")):
        flaky.error = error
        with pytest.raises(type(error)):
            apply_all(table, 2)
        table.forget()
        assert not Path(table.quarantine_path).exists()

    flaky.error, flaky.asked = None, []
    apply_all(table, 2)

    assert len(things_of(table)) == 6
    assert len(flaky.asked) == len(set(flaky.asked)) == 2
    assert isinstance(RegistryAway("no answer"), PASSING_FAILURES)


def test_an_id_that_the_registry_learns_later_is_asked_for_again(
    spark: SparkSession, tmp_path: Path, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaky = Flaky(servers.registry("apicurio"), SchemaUnknown("not yet"))
    events = as_avro(some_things(), servers.writer("apicurio"))
    policy = TablePolicy(quarantine_limit="100%")
    table = ingest_of(spark, tmp_path, events, policy, KeptSchemas(flaky.schema))
    table.apply((OffsetRange(0, 0, 2),))
    flaky.error = None
    monkeypatch.setattr(schema_versions, "REFUSED_FOR_SECONDS", 0.0)

    table.apply((OffsetRange(0, 2, 6),))

    assert sorted(things_of(table)) == [2, 3, 4, 5]
    replay_table(table)
    assert sorted(things_of(table)) == [0, 1, 2, 3, 4, 5]


def test_a_column_whose_name_avro_does_not_allow_is_refused_by_its_own_name(
    spark: SparkSession, tmp_path: Path, servers: Servers
) -> None:
    own = {"__debezium.source.column.name": "größe"}
    fields = [{"type": "int32", "field": "id"}, {"type": "int64", "field": "gr__e", "parameters": own}]
    row = {"type": "struct", "name": "t.Value", "optional": True, "fields": fields, "field": "after"}
    op = {"type": "string", "field": "op"}
    schema = {"type": "struct", "name": "t.Envelope", "fields": [row, op]}
    key_schema = {"type": "struct", "name": "t.Key", "fields": fields[:1]}
    key = json.dumps({"schema": key_schema, "payload": {"id": 1}}).encode()
    payload = {"after": {"id": 1, "gr__e": 10}, "op": "c"}
    value = json.dumps({"schema": schema, "payload": payload}).encode()
    events = as_avro([Recorded("t", 0, key, value, None, None)], servers.writer("confluent"))
    table = ingest_of(spark, tmp_path, events, TablePolicy(), servers.registry("confluent"))

    with pytest.raises(UnusableColumnName, match="größe"):
        apply_all(table, 1000)
