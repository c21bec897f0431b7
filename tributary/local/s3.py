"""Run the local S3 server and create its buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from connectors.worker import as_properties
from tributary.local.jvm import java_command
from tributary.local.local_server import LocalServer
from tributary.local.process import Command
from tributary.local.state import write_private_file

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SERVICE = "s3"
REGION = "us-east-1"
HEAP_MEGABYTES = 192


@dataclass(frozen=True)
class S3Server(LocalServer):
    """An S3-compatible server that stores each object as a file below `folder`/buckets."""

    service: ClassVar[str] = SERVICE
    of_every_lake: ClassVar[bool] = True

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

    def command(self) -> Command:
        (self.folder / "buckets").mkdir(exist_ok=True)
        config = self.folder / "s3proxy.conf"
        write_private_file(config, as_properties(_properties(self)))
        return java_command(
            SERVICE,
            self.java,
            [self.jar],
            "org.gaul.s3proxy.Main",
            ["--properties", str(config)],
            heap_megabytes=HEAP_MEGABYTES,
            scratch=self.folder / "tmp",
            log=self.log,
            properties={"LOG_LEVEL": "warn"},
        )

    def answers(self) -> bool:
        """Return whether the server accepts its credentials."""
        try:
            s3_client(self.endpoint, self.access_key, self.secret_key).list_buckets()
            return True
        except (BotoCoreError, ClientError):
            return False


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
