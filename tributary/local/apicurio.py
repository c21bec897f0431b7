"""Run Apicurio's schema registry, in which the connectors' converters keep the schemas of Avro events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import requests

from tributary.local.jvm import java_command
from tributary.local.local_server import LocalServer
from tributary.local.process import Command

SERVICE = "apicurio"
HEAP_MEGABYTES = 256


@dataclass(frozen=True)
class ApicurioServer(LocalServer):
    """A server that keeps its schemas in one file of H2 below `folder`.

    java     21 or later
    program  the folder of the unpacked archive
    """

    service: ClassVar[str] = SERVICE
    start_timeout_seconds: ClassVar[float] = 120.0

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

    def command(self) -> Command:
        self.folder.mkdir(parents=True, exist_ok=True)
        return java_command(
            SERVICE,
            self.java,
            [self.program / "quarkus-run.jar"],
            "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
            [],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=self.folder / "tmp",
            log=self.log,
            properties=_properties(self),
        )

    def answers(self) -> bool:
        try:
            return requests.get(f"{self.address}/apis/registry/v2/system/info", timeout=2).ok
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
