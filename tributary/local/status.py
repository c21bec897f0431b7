"""Read the state of a state folder's servers and connectors, without changing anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from connectors.connect_rest import (
    GLANCE_SECONDS,
    ConnectorStatus,
    ConnectRefused,
    ConnectRest,
    ConnectUnreachable,
)
from tributary.contract.naming import LakeNames
from tributary.local import connect, kafka, spark
from tributary.local.all_servers import ALL_SERVERS, SERVICES
from tributary.local.process import ProcessRecord, has_died, read_process, resident_bytes
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
        """Tell whether every server except the Spark apps is running, and every connector with its tasks."""
        servers = [service for service in self.services if service.name not in spark.APPS]
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


def read_status(
    state: StateFolder, *, has_kafka: bool = True, memory: Callable[[ProcessRecord], int] = resident_bytes
) -> PipelineStatus:
    """Read the state of the pipeline. Raise StateFolderUnfit if the settings are damaged.

    has_kafka  whether the lake needs Kafka and Kafka Connect
    memory     returns the bytes that a process and its children hold
    """
    settings = state.read_settings()
    ports = settings.ports.model_dump() if settings is not None else {}
    found = (_read_service(state, name, ports.get(name), memory) for name in (*SERVICES, *spark.APPS))
    services = tuple(service for service in found if _is_listed(service, has_kafka=has_kafka))
    running = {service.name for service in services if service.state == "running"}
    connectors = _read_connectors(settings) if settings is not None and connect.SERVICE in running else ()
    return PipelineStatus(settings, services, connectors)


def _is_listed(service: ServiceStatus, *, has_kafka: bool) -> bool:
    """Return whether every lake needs the service, or this one seems to."""
    needs_it = {server.service: server.of_every_lake for server in ALL_SERVERS}.get(service.name, True)
    if service.name in (kafka.SERVICE, connect.SERVICE):
        needs_it = has_kafka
    if service.name == spark.DERIVE_SERVICE:
        needs_it = False
    return needs_it or service.state != "stopped"


def _read_service(
    state: StateFolder, name: str, port: int | None, memory: Callable[[ProcessRecord], int]
) -> ServiceStatus:
    log = str(state.log(name))
    record = read_process(name, state.run)
    if record is None:
        return ServiceStatus(name, "died" if has_died(name, state.run) else "stopped", log)
    uptime = max(0.0, time.time() - record.started)
    return ServiceStatus(name, "running", log, port, record.pid, memory(record), uptime)


def _read_connectors(settings: LocalSettings) -> tuple[ConnectorStatus, ...]:
    """Return the lake's own connectors. Somebody else may have created more in its Connect."""
    rest = ConnectRest(settings.connect_url, GLANCE_SECONDS)
    is_own = LakeNames(settings.lake).is_own_connector
    try:
        return tuple(rest.status_if_known(name) for name in filter(is_own, rest.connectors()))
    except (ConnectUnreachable, ConnectRefused):
        # The worker is starting, stopping or busy. Its ServiceStatus already says that it runs.
        return ()
