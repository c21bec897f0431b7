"""Real schema registries, and the real converters that write Avro with their schemas, each in a JVM."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.avro_converter import avro_options
from connectors.deployment import ApicurioAccess, ConfluentAccess, GlueAccess, RegistryAccess
from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.connectors.deployments import local_deployment
from tests.spark_app.wire_forms import json_converter
from tributary.contract.schema_registry import RegistryKind
from tributary.local.apicurio import ApicurioServer
from tributary.local.server_files import read_apicurio_files
from tributary.local.state import choose_ports

REGION, GLUE_REGISTRY = "eu-west-1", "tests"


@contextmanager
def running_apicurio(folder: Path) -> Iterator[ApicurioServer]:
    """Start Apicurio, which keeps its schemas in the folder, and stop it at the end."""
    files, ports = read_apicurio_files(), choose_ports({}, None, frozenset())
    assert ports.apicurio is not None
    assert ports.apicurio_management is not None
    run = folder / "run"
    run.mkdir(parents=True, exist_ok=True)
    server = ApicurioServer(
        files.java,
        files.program,
        folder / "apicurio",
        folder / "apicurio.log",
        run,
        ports.apicurio,
        ports.apicurio_management,
    )
    server.start(threading.Event())
    try:
        yield server
    finally:
        server.stop(run)


@dataclass(frozen=True)
class Writing:
    """How a converter writes: the plugin that it is in, its registry, and options beside ours."""

    kind: RegistryKind
    access: RegistryAccess
    options: Mapping[str, str]


def writings(apicurio: str, glue: str) -> dict[str, Writing]:
    """Return all five framings by name."""
    of_apicurio, of_glue = ApicurioAccess(apicurio), GlueAccess(REGION, GLUE_REGISTRY, glue)
    return {
        "glue": Writing("glue", of_glue, {}),
        "glue with zlib": Writing("glue", of_glue, {"compression": "ZLIB"}),
        "confluent": Writing("confluent", ConfluentAccess(f"{apicurio}/apis/ccompat/v7"), {}),
        "apicurio": Writing("apicurio", of_apicurio, {}),
        "apicurio's default, in the body": Writing(
            "apicurio",
            of_apicurio,
            {"apicurio.registry.as-confluent": "false", "apicurio.registry.use-id": "globalId"},
        ),
    }


def converter_options(writing: Writing, part: str) -> dict[str, str]:
    """Return the options of our connectors' converter, and the writing's own."""
    from dataclasses import replace

    rendered = avro_options(replace(local_deployment(), registry=writing.access))
    prefix = f"{part}.converter."
    ours = {name.removeprefix(prefix): value for name, value in rendered.items() if name.startswith(prefix)}
    return {**ours, **writing.options}


@contextmanager
def converters(kind: RegistryKind) -> Iterator[Any]:
    """Start a JVM with PostgreSQL's plugin, in which the converter is, and yield its py4j view."""
    plugins = unpack_plugins(build_plugins(names=("debezium-connector-postgres",), avro=kind))
    with running_jvm([folder / "*" for folder in sorted(plugins.iterdir())]) as jvm:
        yield jvm


def class_of(kind: RegistryKind, jvm: Any) -> Any:
    match kind:
        case "apicurio":
            return jvm.io.apicurio.registry.utils.converter.AvroConverter()
        case "confluent":
            return jvm.io.confluent.connect.avro.AvroConverter()
        case "glue":
            return jvm.com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter()


@dataclass(frozen=True)
class Sent:
    """A record as a converter writes it, with the headers that it adds."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class AvroWriter:
    """Writes what JsonConverter wrote as Avro, with the transform of our connectors and a real converter.

    `unwrap` are the options of ExtractNewRecordState."""

    jvm: Any
    key: Any
    value: Any
    transforms: list[Any]

    @staticmethod
    def of(
        jvm: Any, writing: Writing, unwrap: Mapping[str, str] | None = None, *, keeps_nulls: bool = True
    ) -> AvroWriter:
        converters = {}
        for part in ("key", "value"):
            converters[part] = class_of(writing.kind, jvm)
            converters[part].configure(converter_options(writing, part), part == "key")
        transforms = [jvm.io.tributary.connect.KeptNulls()] if keeps_nulls else []
        if unwrap is not None:
            transforms.append(jvm.io.debezium.transforms.ExtractNewRecordState())
            transforms[-1].configure(unwrap)
        return AvroWriter(jvm, converters["key"], converters["value"], transforms)

    def records(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]
    ) -> Iterator[tuple[bytes | None, bytes | None] | None]:
        """Yield key and value of each record; None for one that a transform drops."""
        for sent in self._sent(topic, records):
            yield None if sent is None else (sent.key, sent.value)

    def with_headers(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]
    ) -> Iterator[Sent]:
        """Yield the records that no transform drops, with the headers that the converters add."""
        yield from filter(None, self._sent(topic, records))

    def _sent(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]
    ) -> Iterator[Sent | None]:
        reader, key_reader = json_converter(self.jvm, {}), json_converter(self.jvm, {}, is_key=True)
        for key, value in records:
            read_key, read = key_reader.toConnectData(topic, key), reader.toConnectData(topic, value)
            record = self.jvm.org.apache.kafka.connect.source.SourceRecord(
                {}, {}, topic, None, read_key.schema(), read_key.value(), read.schema(), read.value()
            )
            for transform in self.transforms:
                record = record and transform.apply(record)
            yield record and self._converted(topic, record)

    def _converted(self, topic: str, record: Any) -> Sent:
        headers = self.jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        key = self.key.fromConnectData(topic, headers, record.keySchema(), record.key())
        value = self.value.fromConnectData(topic, headers, record.valueSchema(), record.value())
        added = tuple((header.key(), bytes(header.value())) for header in headers.toArray())
        return Sent(_bytes(key), _bytes(value), added)


def _bytes(found: Any) -> bytes | None:
    return None if found is None else bytes(found)
