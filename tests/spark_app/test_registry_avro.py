"""Avro that a real converter wrote with a real registry gives the same table as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from spark_app.registry.framing import unframed
from spark_app.registry.glue import GlueRegistry
from spark_app.registry.http import ApicurioRegistry, ConfluentRegistry
from spark_app.registry.registry import KeptSchemas, SchemaRegistry
from tests.spark_app.registries import (
    GLUE_REGISTRY,
    REGION,
    AvroWriter,
    Writing,
    converters,
    running_apicurio,
    writings,
)
from tests.spark_app.test_recorded_events import Recorded, apply_all, ingest_of
from tests.spark_app.test_wire_forms import (
    ONLY_KEY,
    WITH_INFINITIES,
    Rows,
    expected_of_kept,
    recorded_events,
    rows_of,
)
from tributary.contract.lake import TablePolicy

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


def as_avro(events: list[Recorded], writer: AvroWriter, *, with_key: bool = True) -> list[Recorded]:
    written = writer.records(events[0].topic, [(event.key, event.value) for event in events])
    return [
        replace(event, key=key if with_key else event.key, value=value)
        for event, (key, value) in zip(events, written, strict=True)
    ]


@pytest.mark.parametrize("name", FRAMINGS)
def test_each_framing_gives_the_table_that_json_gives(
    spark: SparkSession, tmp_path: Path, servers: Servers, expected: Rows, name: str
) -> None:
    events = as_avro(sent(), servers.writer(name))
    framed = [unframed(value) for event in events for value in (event.key, event.value) if value is not None]
    assert {each and each.schema.framing for each in framed} == {FRAMINGS[name]}

    table = ingest_of(spark, tmp_path, events, TablePolicy(storage="copy_on_write"), servers.registry(name))
    apply_all(table, 1000)

    assert rows_of(table) == expected
