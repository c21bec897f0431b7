"""Compile our Java class that lets Kafka Connect read `${…}` values from AWS Secrets Manager.

AWS's own provider (aws-samples/msk-config-providers) is in no Maven repository. Ours is in connectors/java.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from connectors.worker import SECRETS_MANAGER_PROVIDER
from tributary.artifacts.fetch import fetch
from tributary.artifacts.java_compiler import compile_jar, compiled_from
from tributary.artifacts.lock import read_lock

LOCK = Path(__file__).with_name("config-provider.lock.json")
JAR = "tributary-config-provider.jar"
_SOURCES = Path(__file__).with_name("java")
_SERVICE = "META-INF/services/org.apache.kafka.common.config.provider.ConfigProvider"
"""Connect finds the class in a plugin only through this file. The class name alone is not enough."""


def compile_provider(plugin_jars: Iterable[Path]) -> bytes:
    """Return the jar, compiled against `plugin_jars`.

    Raises FetchError, LockError, JavaError or NotCompiled.
    """
    kafka = fetch(read_lock(LOCK)["kafka"]).values()
    with TemporaryDirectory() as folder:
        jar = Path(folder, JAR)
        service = {_SERVICE: f"{SECRETS_MANAGER_PROVIDER}\n".encode()}
        compile_jar(jar, _SOURCES, [*kafka, *plugin_jars], service)
        return jar.read_bytes()


def inputs_digest() -> str:
    """Return a digest of the jar's inputs, without the plugin's own jars."""
    return hashlib.sha256(LOCK.read_bytes() + compiled_from(_SOURCES).encode()).hexdigest()
