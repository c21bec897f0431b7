"""Run only the servers that a benchmark needs, in a separate folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.s3_requests import RequestLog, counted_requests
from tributary.contract.lake import Lake
from tributary.local import kafka, s3
from tributary.local.server_files import read_server_files
from tributary.local.servers import Servers
from tributary.local.state import LocalSettings, StateFolder, choose_settings


@dataclass(frozen=True)
class Storage:
    """A running S3 server with the lake's buckets. The other servers are configured but not running."""

    state: StateFolder
    settings: LocalSettings
    servers: Servers


@dataclass(frozen=True)
class StorageAndKafka:
    """Kafka and an S3 server with the lake's buckets.

    `settings` point to a proxy in front of the S3 server, which logs its requests to `requests`.
    """

    state: StateFolder
    settings: LocalSettings
    requests: RequestLog


@contextmanager
def storage(lake: Lake, folder: Path) -> Iterator[Storage]:
    state = StateFolder(folder)
    state.create()
    settings = choose_settings(state, lake.name, {}, frozenset())
    servers = Servers(lake, state, settings, read_server_files())
    try:
        servers.s3.start(threading.Event())
        s3.create_buckets(servers.s3, lake.names.buckets)
        yield Storage(state, settings, servers)
    finally:
        s3.S3Server.stop(state.run)


@contextmanager
def storage_and_kafka(lake: Lake, folder: Path, s3_delay_seconds: float = 0.0) -> Iterator[StorageAndKafka]:
    """Run Kafka and S3 within the context. Each request to S3 is delayed."""
    with storage(lake, folder) as running:
        settings = running.settings
        try:
            running.servers.kafka.start(threading.Event())
            # Connect is not running, so its port is free.
            proxied = settings.ports.model_copy(update={"s3": settings.ports.connect})
            log = folder / "requests.jsonl"
            with counted_requests(proxied.s3, settings.ports.s3, log, s3_delay_seconds) as requests:
                settings = settings.model_copy(update={"ports": proxied})
                yield StorageAndKafka(running.state, settings, requests)
        finally:
            kafka.KafkaBroker.stop(running.state.run)
