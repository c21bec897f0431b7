"""Compile our Java classes for Kafka Connect, which each source's plugin contains.

`SecretsManagerConfigProvider` reads `${…}` values from AWS Secrets Manager: AWS's own provider
(aws-samples/msk-config-providers) is in no Maven repository. `CertificatesConfigProvider` writes the roots in
connectors/certificates, which are in the jar, to files. The other classes are transforms. The sources are in
connectors/java.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from connectors.certificates import PROVIDER, RDS_ROOTS
from connectors.engines.debezium_options import (
    KEPT_NULLS,
    MASKED_COLUMNS,
    RESUMABLE_OFFSETS,
    TRANSACTION_NUMBERS,
    ZERO_TIMESTAMPS,
)
from connectors.worker import SECRETS_MANAGER_PROVIDER
from tributary.artifacts.fetch import fetch
from tributary.artifacts.java_compiler import compile_jar, compiled_from
from tributary.artifacts.lock import read_lock

LOCK = Path(__file__).with_name("connect-classes.lock.json")
JAR = "tributary-connect.jar"
_SOURCES = Path(__file__).with_name("java")
_SERVICES = {
    f"META-INF/services/{kind}": "".join(f"{name}\n" for name in class_names).encode()
    for kind, class_names in {
        "org.apache.kafka.common.config.provider.ConfigProvider": (SECRETS_MANAGER_PROVIDER, PROVIDER),
        "org.apache.kafka.connect.transforms.Transformation": (
            MASKED_COLUMNS,
            RESUMABLE_OFFSETS,
            KEPT_NULLS,
            TRANSACTION_NUMBERS,
            ZERO_TIMESTAMPS,
        ),
    }.items()
}
"""Connect finds a class in a plugin only through these files. The class name alone is not enough."""


def compile_classes(plugin_jars: Iterable[Path]) -> bytes:
    """Return the jar, compiled against `plugin_jars`.

    Raises FetchError, LockError, JavaError or NotCompiled.
    """
    kafka = fetch(read_lock(LOCK)["kafka"]).values()
    with TemporaryDirectory() as folder:
        jar = Path(folder, JAR)
        roots = {RDS_ROOTS.name: RDS_ROOTS.read_bytes()}
        compile_jar(jar, _SOURCES, [*kafka, *plugin_jars], _SERVICES | roots)
        return jar.read_bytes()


def inputs_digest() -> str:
    """Return a digest of the jar's inputs, without the plugin's own jars."""
    inputs = (LOCK.read_bytes(), compiled_from(_SOURCES), _SERVICES, RDS_ROOTS.read_bytes())
    return hashlib.sha256(repr(inputs).encode()).hexdigest()
