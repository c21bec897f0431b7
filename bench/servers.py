"""Knows how to run the servers that a benchmark needs, and no others, in a folder of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.s3_requests import RequestLog, counted_requests
from contract.lake import Lake
from local import kafka, s3
from local.server_files import read_server_files
from local.servers import Servers
from local.state import LocalSettings, StateFolder, settle


@dataclass(frozen=True)
class StorageAndKafka:
    """Kafka and an S3 server with the lake's buckets. By `settings` one finds the S3 server through a proxy
    that writes its requests to `requests`."""

    state: StateFolder
    settings: LocalSettings
    requests: RequestLog


@contextmanager
def storage_and_kafka(lake: Lake, folder: Path) -> Iterator[StorageAndKafka]:
    state = StateFolder(folder)
    state.create()
    settings = settle(state, lake.name, {}, frozenset())
    servers = Servers(lake, state, settings, read_server_files())
    cancelled = threading.Event()
    try:
        s3.start_s3(servers.s3, cancelled)
        s3.create_buckets(servers.s3, lake.names.buckets)
        kafka.start_kafka(servers.kafka, cancelled)
        # Connect does not run here: its port is free.
        proxied = settings.ports.model_copy(update={"s3": settings.ports.connect})
        with counted_requests(proxied.s3, settings.ports.s3, folder / "requests.jsonl") as requests:
            yield StorageAndKafka(state, settings.model_copy(update={"ports": proxied}), requests)
    finally:
        kafka.stop_kafka(state.run)
        s3.stop_s3(state.run)
