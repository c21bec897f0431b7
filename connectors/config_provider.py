"""Knows how the one Java class of the project becomes a jar: AWS Secrets Manager for Kafka Connect's `${…}`.

AWS's own provider (aws-samples/msk-config-providers) is in no Maven repository. Hence a class of our own
(connectors/java), compiled by Eclipse's compiler, which is one pinned jar and needs no JDK. The same source
and lock give the same bytes on any machine.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from artifacts.fetch import fetch
from artifacts.java import MAJOR, find_java
from artifacts.lock import read_lock
from artifacts.zips import write_zip
from connectors.worker import SECRETS_MANAGER_PROVIDER
from contract.errors import TributaryError

LOCK = Path(__file__).with_name("compiler.lock.json")
JAR = "tributary-config-provider.jar"
_OPTIONS = (f"-{MAJOR}", "-proc:none", "-g:lines,source", "-encoding", "UTF-8")
_SOURCES = Path(__file__).with_name("java")
_SERVICE = "META-INF/services/org.apache.kafka.common.config.provider.ConfigProvider"
"""By this file Connect finds the class in a plugin; by its name alone it would not."""


class NotCompiled(TributaryError):
    """The compiler refused the class."""


def compile_provider(plugin_jars: Iterable[Path]) -> bytes:
    """The jar; `plugin_jars` hold what the class calls. FetchError, LockError, JavaError or NotCompiled."""
    lock = read_lock(LOCK)
    compiler, kafka = (fetch(lock[name])[lock[name][0]] for name in ("compiler", "kafka"))
    with TemporaryDirectory() as folder:
        classes, jar = Path(folder, "classes"), Path(folder, JAR)
        places = ["-d", str(classes), "-classpath", ":".join(map(str, [kafka, *plugin_jars]))]
        done = subprocess.run(
            [find_java().java, "-jar", compiler, *_OPTIONS, *places, _SOURCES],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotCompiled(
                "Java code of the project does not compile", where=str(_SOURCES), found=done.stderr
            )
        files: dict[str, Path | bytes] = {
            path.relative_to(classes).as_posix(): path for path in classes.rglob("*.class")
        }
        write_zip(jar, {**files, _SERVICE: f"{SECRETS_MANAGER_PROVIDER}\n".encode()})
        return jar.read_bytes()


def inputs_digest() -> str:
    """What the jar depends on beside the plugin's own jars."""
    inputs = [
        LOCK.read_bytes(),
        repr(_OPTIONS).encode(),
        *(path.read_bytes() for path in sorted(_SOURCES.rglob("*.java"))),
    ]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()
