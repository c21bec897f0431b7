"""Run a distributed Kafka Connect worker, and give its connectors their passwords."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from connectors.worker import as_properties
from tributary.local.jvm import java_command, write_log4j_properties
from tributary.local.process import ProcessRecord, start_process, stop_process, wait_until_healthy
from tributary.local.state import write_private_file

SERVICE = "connect"
START_TIMEOUT_SECONDS = 90.0
HEAP_MEGABYTES = 640


@dataclass(frozen=True)
class ConnectWorker:
    """One worker. `properties` are complete but hold no secret.

    Each of `secrets` becomes a file in secrets_folder(), to which connectors refer (DirectoryConfigProvider).
    """

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


def start_connect(worker: ConnectWorker, cancelled: threading.Event) -> ProcessRecord:
    """Start the worker and wait until its REST interface answers, which means that it has joined its group.

    Raises ServiceFailed.
    """
    log4j = worker.folder / "log4j.properties"
    write_secrets(worker)
    worker.config.write_text(as_properties(worker.properties))
    write_log4j_properties(log4j, "INFO", _QUIET)
    record = start_process(
        java_command(
            SERVICE,
            worker.java,
            worker.classpath,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            [str(worker.config)],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=worker.folder / "tmp",
            log=worker.log,
            properties={"log4j.configuration": log4j.as_uri()},
            environment=worker.environment,
        ),
        worker.run,
    )
    wait_until_healthy(record, lambda: answers(worker.url), START_TIMEOUT_SECONDS, cancelled)
    return record


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


def answers(url: str) -> bool:
    """Tell whether a worker at the URL lists its connectors, which it does after reading its config topic."""
    try:
        return requests.get(f"{url}/connectors", timeout=2).ok
    except requests.RequestException:
        return False


def stop_connect(run_folder: Path, patience_seconds: float = 20.0) -> bool:
    """Let the tasks finish and commit their work. Return False if the worker was not running."""
    return stop_process(SERVICE, run_folder, patience_seconds=patience_seconds)


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
