"""Read the state of a state folder's servers and connectors, without changing anything."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from connectors.connect_rest import ConnectorStatus, ConnectRefused, ConnectRest, ConnectUnreachable
from tributary.local import apicurio, connect, dynamodb, kafka, kinesis, mariadb, postgres, s3, spark
from tributary.local.process import has_died, read_process, resident_bytes
from tributary.local.state import LocalSettings, StateFolder


@dataclass(frozen=True)
class ServiceStatus:
    """The state of a server. All optional fields are None unless it is running.

    died  the server ended although nobody stopped it
    """

    name: str
    state: Literal["running", "stopped", "died"]
    log: str
    port: int | None = None
    pid: int | None = None
    resident_bytes: int | None = None
    uptime_seconds: float | None = None


@dataclass(frozen=True)
class PipelineStatus:
    """The state of a pipeline.

    settings    None if nothing was ever started
    connectors  empty if the Connect worker is not running
    """

    settings: LocalSettings | None
    services: tuple[ServiceStatus, ...]
    connectors: tuple[ConnectorStatus, ...]

    @property
    def is_well(self) -> bool:
        """Tell whether every server except Spark is running, and every connector with its tasks."""
        servers = [service for service in self.services if service.name != spark.SERVICE]
        has_connect = any(service.name == connect.SERVICE for service in servers)
        return (
            all(service.state == "running" for service in servers)
            and bool(self.connectors) == has_connect
            and all(connector.is_running for connector in self.connectors)
        )

    @property
    def resident_bytes(self) -> int:
        """The memory of everything that runs."""
        return sum(service.resident_bytes or 0 for service in self.services)


def read_status(state: StateFolder, *, has_kafka: bool = True) -> PipelineStatus:
    """Read the state of the pipeline. Raise StateFolderUnfit if the settings are damaged.

    has_kafka  whether the lake needs Kafka and Kafka Connect
    """
    settings = state.read_settings()
    found = (_read_service(state, name, port) for name, port in _services_and_ports(settings))
    optional = {*_OF_SOME_LAKES, *(() if has_kafka else (kafka.SERVICE, connect.SERVICE))}
    services = tuple(one for one in found if one.name not in optional or one.state != "stopped")
    running = {service.name for service in services if service.state == "running"}
    connectors = _read_connectors(settings) if settings is not None and connect.SERVICE in running else ()
    return PipelineStatus(settings, services, connectors)


_OF_SOME_LAKES = (mariadb.SERVICE, apicurio.SERVICE, dynamodb.SERVICE, kinesis.SERVICE)
"""Services that not every lake needs."""


def _services_and_ports(settings: LocalSettings | None) -> list[tuple[str, int | None]]:
    ports = settings.ports if settings is not None else None
    return [
        (postgres.SERVICE, ports.postgres if ports else None),
        (mariadb.SERVICE, ports.mariadb if ports else None),
        (kafka.SERVICE, ports.kafka if ports else None),
        (s3.SERVICE, ports.s3 if ports else None),
        (apicurio.SERVICE, ports.apicurio if ports else None),
        (kinesis.SERVICE, ports.kinesis if ports else None),
        (dynamodb.SERVICE, ports.dynamodb if ports else None),
        (connect.SERVICE, ports.connect if ports else None),
        (spark.SERVICE, None),
    ]


def _read_service(state: StateFolder, name: str, port: int | None) -> ServiceStatus:
    log = str(state.log(name))
    record = read_process(name, state.run)
    if record is None:
        return ServiceStatus(name, "died" if has_died(name, state.run) else "stopped", log)
    uptime = max(0.0, time.time() - record.started)
    return ServiceStatus(name, "running", log, port, record.pid, resident_bytes(record), uptime)


def _read_connectors(settings: LocalSettings) -> tuple[ConnectorStatus, ...]:
    rest = ConnectRest(settings.connect_url)
    try:
        return tuple(rest.status(name) for name in rest.connectors())
    except (ConnectUnreachable, ConnectRefused):
        # The worker is starting or stopping. Its ServiceStatus already says that it runs.
        return ()
