"""Run kinesalite as the local Kinesis, and create its streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tributary.contract.item_stream import ItemStream
from tributary.contract.lake import Lake
from tributary.local.local_server import LocalServer
from tributary.local.process import Command
from tributary.local.s3 import REGION

SERVICE = "kinesis"
SHARDS = 2
PROGRAM = Path(__file__).parent / "items" / "kinesis_server.js"

ANY_KEY = "local"
"""The local servers of DynamoDB and Kinesis accept all credentials, and listen on loopback only."""


@dataclass(frozen=True)
class KinesisServer(LocalServer):
    """A server on a loopback port that keeps its records in `folder`. `packages` has its node_modules."""

    service: ClassVar[str] = SERVICE

    node: Path
    packages: Path
    folder: Path
    log: Path
    run: Path
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Command:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        arguments = [str(self.node), str(PROGRAM), str(self.packages), str(self.port), str(self.folder)]
        return Command(SERVICE, arguments, log=self.log)

    def answers(self) -> bool:
        try:
            kinesis_client(self.endpoint).list_streams()
            return True
        except (BotoCoreError, ClientError):
            return False


def streams_here(lake: Lake) -> tuple[ItemStream, ...]:
    """Return the streams of the sources that do not name services of their own."""
    found = (source.item_stream for source in lake.item_sources)
    return tuple(stream for stream in found if stream is not None and stream.stream_endpoint is None)


def create_streams(server: KinesisServer, streams: Iterable[ItemStream]) -> None:
    """Create the streams that do not exist yet, and wait until they can be used."""
    for stream in streams:
        client = kinesis_client(server.endpoint, stream.region_of_stream or REGION)
        if stream.name not in client.list_streams()["StreamNames"]:
            client.create_stream(StreamName=stream.name, ShardCount=SHARDS)
        waiter = client.get_waiter("stream_exists")
        waiter.wait(StreamName=stream.name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})


def kinesis_client(endpoint: str, region: str = REGION) -> Any:
    """Return a client for the local server that ignores the user's own AWS configuration."""
    return boto3.session.Session().client(
        "kinesis",
        endpoint_url=endpoint,
        region_name=region,
        config=Config(connect_timeout=2, read_timeout=20, retries={"total_max_attempts": 2}),
        aws_access_key_id=ANY_KEY,
        aws_secret_access_key=ANY_KEY,
    )
