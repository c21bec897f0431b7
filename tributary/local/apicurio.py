"""Run Apicurio's schema registry, in which the connectors' converters keep the schemas of Avro events."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import requests

from tributary.local.jvm import java_command
from tributary.local.process import ProcessRecord, start_process, stop_process, wait_until_healthy

SERVICE = "apicurio"
START_TIMEOUT_SECONDS = 120.0
HEAP_MEGABYTES = 256


@dataclass(frozen=True)
class ApicurioServer:
    """A server that keeps its schemas in one file of H2 below `folder`.

    java     21 or later
    program  the folder of the unpacked archive
    """

    java: Path
    program: Path
    folder: Path
    log: Path
    run: Path
    port: int
    management_port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def start_apicurio(server: ApicurioServer, cancelled: threading.Event) -> ProcessRecord:
    """Start the server and wait until it answers. Raise ServiceFailed."""
    server.folder.mkdir(parents=True, exist_ok=True)
    record = start_process(
        java_command(
            SERVICE,
            server.java,
            [server.program / "quarkus-run.jar"],
            "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
            [],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=server.folder / "tmp",
            log=server.log,
            properties=_properties(server),
        ),
        server.run,
    )
    wait_until_healthy(record, lambda: answers(server), START_TIMEOUT_SECONDS, cancelled)
    return record


def stop_apicurio(run_folder: Path, patience_seconds: float = 10.0) -> bool:
    """Stop the server. Return False if it was not running."""
    return stop_process(SERVICE, run_folder, patience_seconds=patience_seconds)


def answers(server: ApicurioServer) -> bool:
    try:
        return requests.get(f"{server.address}/apis/registry/v2/system/info", timeout=2).ok
    except requests.RequestException:
        return False


def _properties(server: ApicurioServer) -> dict[str, str]:
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(server.port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(server.management_port),
        "apicurio.storage.kind": "sql",
        "apicurio.storage.sql.kind": "h2",
        "apicurio.datasource.url": f"jdbc:h2:file:{server.folder / 'registry'};DB_CLOSE_DELAY=-1",
    }
