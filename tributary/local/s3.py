"""Run the local S3 server and create its buckets."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from connectors.worker import as_properties
from tributary.local.jvm import java_command
from tributary.local.process import ProcessRecord, start_process, stop_process, wait_until_healthy
from tributary.local.state import write_private_file

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SERVICE = "s3"
REGION = "us-east-1"
START_TIMEOUT_SECONDS = 60.0
HEAP_MEGABYTES = 192


@dataclass(frozen=True)
class S3Server:
    """An S3-compatible server that stores each object as a file below `folder`/buckets."""

    java: Path
    jar: Path
    folder: Path
    log: Path
    run: Path
    port: int
    access_key: str
    secret_key: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def start_s3(server: S3Server, cancelled: threading.Event) -> ProcessRecord:
    """Start the server and wait until it accepts its credentials. Raise ServiceFailed."""
    (server.folder / "buckets").mkdir(exist_ok=True)
    config = server.folder / "s3proxy.conf"
    write_private_file(config, as_properties(_properties(server)))
    record = start_process(
        java_command(
            SERVICE,
            server.java,
            [server.jar],
            "org.gaul.s3proxy.Main",
            ["--properties", str(config)],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=server.folder / "tmp",
            log=server.log,
            properties={"LOG_LEVEL": "warn"},
        ),
        server.run,
    )
    wait_until_healthy(record, lambda: answers(server), START_TIMEOUT_SECONDS, cancelled)
    return record


def s3a_options(endpoint: str) -> Mapping[str, str]:
    """Return S3A's options for the local server, without the prefix `fs.s3a.` or a bucket's prefix."""
    return {
        "endpoint": endpoint,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        # The server's ETags of multipart uploads differ from those that S3A expects while reading.
        "change.detection.mode": "none",
        # Otherwise, for each object that it writes, S3A requests to delete the markers of all parent folders.
        "directory.marker.retention": "keep",
    }


def stop_s3(run_folder: Path, patience_seconds: float = 10.0) -> bool:
    """Stop the server. Return False if it was not running."""
    return stop_process(SERVICE, run_folder, patience_seconds=patience_seconds)


def create_buckets(server: S3Server, buckets: Iterable[str]) -> None:
    """Create the buckets that do not exist yet."""
    client = s3_client(server.endpoint, server.access_key, server.secret_key)
    there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    for bucket in buckets:
        if bucket not in there:
            client.create_bucket(Bucket=bucket)


def s3_client(endpoint: str, access_key: str, secret_key: str) -> S3Client:
    """Return a client for the local server that ignores the user's own AWS configuration."""
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name=REGION,
        config=Config(
            s3={"addressing_style": "path"},
            connect_timeout=2,
            read_timeout=60,
            retries={"total_max_attempts": 2},
        ),
    )


def _properties(server: S3Server) -> dict[str, str]:
    return {
        "s3proxy.endpoint": server.endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": server.access_key,
        "s3proxy.credential": server.secret_key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(server.folder / "buckets"),
        # The server buffers a body that its client signs as a whole, up to this size.
        "s3proxy.v4-max-non-chunked-request-size": str(256 * 1024 * 1024),
    }


def answers(server: S3Server) -> bool:
    try:
        s3_client(server.endpoint, server.access_key, server.secret_key).list_buckets()
        return True
    except (BotoCoreError, ClientError):
        return False
