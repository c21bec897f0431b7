"""Run a distributed Kafka Connect worker, and give its connectors their passwords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import requests

from connectors.worker import as_properties
from tributary.local.jvm import java_command, write_log4j_properties
from tributary.local.local_server import LocalServer
from tributary.local.process import Command
from tributary.local.state import write_private_file

SERVICE = "connect"
HEAP_MEGABYTES = 640


@dataclass(frozen=True)
class ConnectWorker(LocalServer):
    """One worker. `properties` are complete but hold no secret.

    Each of `secrets` becomes a file in secrets_folder(), to which connectors refer (DirectoryConfigProvider).
    """

    service: ClassVar[str] = SERVICE
    of_every_lake: ClassVar[bool] = True
    ends_first: ClassVar[bool] = True
    start_timeout_seconds: ClassVar[float] = 90.0
    patience_seconds: ClassVar[float] = 20.0  # the tasks finish and commit their work

    java: Path
    classpath: Sequence[Path]
    folder: Path
    log: Path
    run: Path
    port: int
    properties: Mapping[str, str]
    secrets: Mapping[str, str]
    environment: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def config(self) -> Path:
        return self.folder / "worker.properties"

    def command(self) -> Command:
        log4j = self.folder / "log4j.properties"
        write_secrets(self)
        self.config.write_text(as_properties(self.properties))
        write_log4j_properties(log4j, "INFO", _QUIET)
        return java_command(
            SERVICE,
            self.java,
            self.classpath,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            [str(self.config)],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=self.folder / "tmp",
            log=self.log,
            properties={"log4j.configuration": log4j.as_uri()},
            environment=self.environment,
        )

    def answers(self) -> bool:
        """Return whether the worker lists its connectors, which it does once it has joined its group."""
        try:
            return requests.get(f"{self.url}/connectors", timeout=2).ok
        except requests.RequestException:
            return False


def is_configured_as(worker: ConnectWorker) -> bool:
    """Tell whether the worker was last started with these properties."""
    return worker.config.exists() and worker.config.read_text() == as_properties(worker.properties)


def secrets_folder(folder: Path) -> Path:
    """Return the folder of the secrets, below the worker's folder."""
    return folder / "secrets"


def write_secrets(worker: ConnectWorker) -> None:
    """Write the secrets. A connector reads its secret when it is started or restarted."""
    folder = secrets_folder(worker.folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, secret in worker.secrets.items():
        write_private_file(folder / name, secret)


# Each client and each connector prints all of its settings several times at each start.
_RUNTIME = "org.apache.kafka.connect.runtime"
_QUIET = {
    "org.apache.kafka.clients": "WARN",
    "org.apache.kafka.common": "WARN",
    "org.apache.kafka.connect.json": "WARN",
    f"{_RUNTIME}.ConnectorConfig": "WARN",
    f"{_RUNTIME}.ConnectorConfig$EnrichedConnectorConfig": "WARN",
    f"{_RUNTIME}.SinkConnectorConfig": "WARN",
    f"{_RUNTIME}.SourceConnectorConfig": "WARN",
    f"{_RUNTIME}.SourceConnectorConfig$EnrichedSourceConnectorConfig": "WARN",
    f"{_RUNTIME}.TaskConfig": "WARN",
    f"{_RUNTIME}.isolation": "WARN",
    f"{_RUNTIME}.rest": "WARN",
    "io.debezium.jdbc.JdbcConnection": "WARN",
    "io.debezium.util.Threads": "WARN",
    "org.apache.iceberg": "WARN",
    "org.apache.hadoop": "ERROR",
    "org.reflections": "ERROR",
}
