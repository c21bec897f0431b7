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

from connectors.certificates import RDS_ROOTS
from tributary.artifacts.fetch import fetch
from tributary.artifacts.java_compiler import compile_jar, compiled_from
from tributary.artifacts.lock import read_lock

LOCK = Path(__file__).with_name("connect-classes.lock.json")
JAR = "tributary-connect.jar"
_SOURCES = Path(__file__).with_name("java")
_SERVICES = "META-INF/services"
"""Connect finds a class in a plugin only through these files. The class name alone is not enough."""


def compile_classes(plugin_jars: Iterable[Path]) -> bytes:
    """Return the jar, compiled against `plugin_jars`.

    Raises FetchError, LockError, JavaError or NotCompiled.
    """
    kafka = fetch(read_lock(LOCK)["kafka"]).values()
    with TemporaryDirectory() as folder:
        jar = Path(folder, JAR)
        compile_jar(jar, _SOURCES, [*kafka, *plugin_jars], _resources())
        return jar.read_bytes()


def inputs_digest() -> str:
    """Return a digest of the jar's inputs, without the plugin's own jars."""
    inputs = (LOCK.read_bytes(), compiled_from(_SOURCES), _resources())
    return hashlib.sha256(repr(inputs).encode()).hexdigest()


def _resources() -> dict[str, bytes]:
    """Return the jar's other files by their names."""
    services = {
        f"{_SERVICES}/{file.name}": file.read_bytes() for file in sorted((_SOURCES / _SERVICES).iterdir())
    }
    return {**services, RDS_ROOTS.name: RDS_ROOTS.read_bytes()}
