"""The plugin zips have every pinned jar, and have the same bytes wherever they are built."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

import pytest

from connectors import connect_classes
from connectors.avro_converter import CONVERTERS, LOCK
from connectors.engines.registry import ENGINES
from connectors.plugins import Plugin, build_plugins, plugins_for, unpack_plugins
from tributary import local
from tributary.artifacts import java_compiler
from tributary.artifacts.cache import cache_root
from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import read_lock
from tributary.contract.lake import parse_lake
from tributary.contract.schema_registry import RegistryKind

KAFKA_LOCK = Path(local.__file__).with_name("services.lock.json")
BUILT_TWICE = ("debezium-connector-postgres", "debezium-connector-mysql")
"""All plugins are built by the same code. These two hold downloaded jars and classes of the project."""


@pytest.fixture(scope="module")
def plugins() -> tuple[Plugin, ...]:
    return build_plugins()


@pytest.fixture(scope="module")
def other_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another cache with newer copies of the jars, and with zips built in another time zone."""
    locks = map(read_lock, (LOCK, connect_classes.LOCK, java_compiler.LOCK))
    jars = fetch(artifact for lock in locks for part in lock.sets.values() for artifact in part.files)
    cache = tmp_path_factory.mktemp("plugins") / "cache"
    for path in jars.values():
        copy = cache / path.relative_to(cache_root())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    previous = os.umask(0o077)
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("TRIBUTARY_CACHE", str(cache))
            environment.setenv("TZ", "Pacific/Auckland")
            build_plugins(names=BUILT_TWICE)
    finally:
        os.umask(previous)
    return cache


@pytest.fixture
def built_elsewhere(other_cache: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Plugin, ...]:
    """The plugins of the other cache. Everything that the test builds goes there too."""
    monkeypatch.setenv("TRIBUTARY_CACHE", str(other_cache))
    return build_plugins(names=BUILT_TWICE)


def test_the_same_lock_gives_the_same_bytes_in_another_cache_at_another_time(
    plugins: tuple[Plugin, ...], built_elsewhere: tuple[Plugin, ...]
) -> None:
    assert {(plugin.name, plugin.sha256) for plugin in built_elsewhere} == {
        (plugin.name, plugin.sha256) for plugin in plugins if plugin.name in BUILT_TWICE
    }
    assert not {plugin.zip for plugin in built_elsewhere} & {plugin.zip for plugin in plugins}


def test_a_zip_is_named_after_its_content(plugins: tuple[Plugin, ...], tmp_path: Path) -> None:
    for plugin in build_plugins(tmp_path / "out"):
        assert plugin.zip.parent == tmp_path / "out"
        assert hashlib.sha256(plugin.zip.read_bytes()).hexdigest() == plugin.sha256
        assert plugin.zip.name == f"{plugin.name}-{plugin.sha256[:12]}.zip"
    names = [plugin.name for plugin in plugins]
    assert names == [*(f"debezium-connector-{name}" for name in ENGINES), "iceberg-sink"]
    lake = parse_lake('[lake]\nname = "shop"\n[source.web]\nengine = "mysql"\ntables = ["shop.*"]\n')
    assert plugins_for(lake) == {"debezium-connector-mysql", "iceberg-sink"}


def test_a_zip_that_was_damaged_in_the_cache_is_built_again(
    plugins: tuple[Plugin, ...], built_elsewhere: tuple[Plugin, ...]
) -> None:
    damaged = built_elsewhere[0]
    whole = next(plugin for plugin in plugins if plugin.name == damaged.name)
    damaged.zip.write_bytes(b"damaged")
    (again,) = build_plugins(names=(damaged.name,))
    assert again.zip.read_bytes() == whole.zip.read_bytes()


def test_a_plugin_is_one_folder_with_its_name_and_its_licenses(plugins: tuple[Plugin, ...]) -> None:
    for plugin in plugins:
        with ZipFile(plugin.zip) as archive:
            assert {name.split("/")[0] for name in archive.namelist()} == {plugin.name}
    with ZipFile(plugins[0].zip) as archive:
        assert f"{plugins[0].name}/LICENSE.txt" in archive.namelist()
        assert f"{plugins[0].name}/LICENSE-3rd-PARTIES.txt" in archive.namelist()


def test_each_plugin_holds_every_jar_that_the_lock_pins_for_it(plugins: tuple[Plugin, ...]) -> None:
    for plugin in plugins:
        with ZipFile(plugin.zip) as archive:
            hashes = {hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
        pinned = {file.sha256 for file in read_lock(LOCK)[plugin.name] if file.packaging == "jar"}
        assert pinned <= hashes


@pytest.mark.parametrize(
    ("plugin", "kind", "class_name"),
    [
        (
            "debezium-connector-postgres",
            "org.apache.kafka.connect.source.SourceConnector",
            "io.debezium.connector.postgresql.PostgresConnector",
        ),
        (
            "debezium-connector-mariadb",
            "org.apache.kafka.connect.transforms.Transformation",
            "io.tributary.connect.binlog.BinlogOffsets",
        ),
        (
            "iceberg-sink",
            "org.apache.kafka.connect.sink.SinkConnector",
            "org.apache.iceberg.connect.IcebergSinkConnector",
        ),
        (
            "iceberg-sink",
            "org.apache.kafka.connect.transforms.Transformation",
            "org.apache.iceberg.connect.transforms.KafkaMetadataTransform",
        ),
        (
            "iceberg-sink",
            "org.apache.kafka.connect.transforms.Transformation",
            "io.debezium.transforms.HeaderToValue",
        ),
    ],
)
def test_a_worker_that_discovers_by_service_files_finds(
    plugin: str, kind: str, class_name: str, plugins: tuple[Plugin, ...]
) -> None:
    folder = unpack_plugins(plugins) / plugin
    assert class_name in read_services(folder.glob("*.jar"))[kind]


@pytest.mark.parametrize(
    ("kind", "class_name"),
    [
        ("storage.Converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("storage.HeaderConverter", "org.apache.kafka.connect.json.JsonConverter"),
        ("storage.Converter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("storage.HeaderConverter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("transforms.Transformation", "org.apache.kafka.connect.transforms.HoistField$Key"),
        ("transforms.Transformation", "org.apache.kafka.connect.transforms.HoistField$Value"),
        ("transforms.Transformation", "org.apache.kafka.connect.transforms.HeaderFrom$Key"),
        ("transforms.predicates.Predicate", "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"),
    ],
)
def test_the_worker_itself_brings(kind: str, class_name: str) -> None:
    jars = fetch(read_lock(KAFKA_LOCK)["kafka"]).values()
    assert class_name in read_services(jars)[f"org.apache.kafka.connect.{kind}"]


def read_services(jars: Iterable[Path]) -> dict[str, set[str]]:
    """Return the classes that the jars offer, by kind, as java.util.ServiceLoader reads them."""
    services: dict[str, set[str]] = defaultdict(set)
    for path in jars:
        with ZipFile(path) as jar:
            for name in jar.namelist():
                if name.startswith("META-INF/services/") and not name.endswith("/"):
                    lines = jar.read(name).decode().splitlines()
                    services[Path(name).name] |= {line.partition("#")[0].strip() for line in lines}
    return services


@pytest.mark.parametrize("kind", ["apicurio", "confluent", "glue"])
def test_a_source_s_plugin_can_hold_an_avro_converter_that_a_worker_finds(kind: RegistryKind) -> None:
    (plugin,) = build_plugins(names=("debezium-connector-postgres",), avro=kind)
    assert plugin.name == f"debezium-connector-postgres-avro-{kind}"
    folder = unpack_plugins((plugin,)) / plugin.name
    converter = CONVERTERS[kind]
    assert converter in read_services(folder.glob("*.jar"))["org.apache.kafka.connect.storage.Converter"]
    files = [ZipFile(jar).namelist() for jar in folder.glob("*.jar")]
    assert any(f"{converter.replace('.', '/')}.class" in names for names in files)
    # Connect brings these itself, and two of them would not work together.
    assert not {
        jar.name for jar in folder.glob("*.jar") if jar.name.startswith(("kafka-clients", "connect-"))
    }
