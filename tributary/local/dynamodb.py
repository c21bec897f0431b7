"""Run moto's server as the local DynamoDB. It sends each change of an item to the local Kinesis."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tributary.contract.lake import Lake
from tributary.contract.patterns import TablePattern, TablePatterns
from tributary.local.kinesis import ANY_KEY
from tributary.local.local_server import LocalServer
from tributary.local.process import Command, find_process, read_process
from tributary.local.s3 import REGION

SERVICE = "dynamodb"
PROGRAM = Path(__file__).parent / "items" / "dynamodb_server.py"
READY = "ready"


@dataclass(frozen=True)
class Destination:
    """A stream, and a regular expression of the tables whose changes go to it."""

    region: str
    stream: str
    tables: str


@dataclass(frozen=True)
class DynamoDbServer(LocalServer):
    """A server on a loopback port.

    packages      the folder with moto and what it needs
    folder        for its tables while it does not run
    kinesis       the address of the local Kinesis
    destinations  where the changes of which tables go
    disorder      whether records also come late and twice
    """

    service: ClassVar[str] = SERVICE
    ends_first: ClassVar[bool] = True  # it sends its last records to Kinesis
    patience_seconds: ClassVar[float] = 30.0

    packages: Path
    folder: Path
    log: Path
    run: Path
    port: int
    kinesis: str
    destinations: tuple[Destination, ...]
    disorder: bool = False

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Command:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        (self.folder / READY).unlink(missing_ok=True)
        return Command(SERVICE, self.arguments(), log=self.log, environment=_environment(self.packages))

    def answers(self) -> bool:
        """Return whether the server has loaded its tables and lists them."""
        try:
            dynamodb_client(self.endpoint).list_tables()
            return (self.folder / READY).exists()
        except (BotoCoreError, ClientError):
            return False

    def runs_as(self) -> bool:
        """Return whether the server does not run, or runs with these destinations and settings."""
        record = read_process(SERVICE, self.run)
        process = None if record is None else find_process(record)
        return process is None or process.cmdline()[-len(self.arguments()) + 1 :] == self.arguments()[1:]

    def arguments(self) -> list[str]:
        each = (["--destination", d.region, d.stream, d.tables] for d in self.destinations)
        return [
            *(sys.executable, "-s", str(PROGRAM), "--port", str(self.port)),
            *("--kinesis", self.kinesis, "--folder", str(self.folder)),
            *(["--disorder"] if self.disorder else []),
            *(argument for arguments in each for argument in arguments),
        ]


def destinations_here(lake: Lake) -> tuple[Destination, ...]:
    """Return the destinations of the sources that do not name services of their own."""

    def found() -> Iterator[Destination]:
        for source in lake.item_sources:
            stream = source.item_stream
            if stream is not None and stream.stream_endpoint is None:
                region = stream.region_of_stream or REGION
                yield Destination(region, stream.name, table_regex(source.patterns))

    return tuple(found())


def table_regex(patterns: TablePatterns) -> str:
    """Return a regular expression of the table names that the patterns take."""

    def regex(pattern: TablePattern) -> str:
        return re.escape(pattern.table).replace(r"\*", ".*").replace(r"\?", ".")

    excluded = "".join(f"(?!{regex(pattern)}$)" for pattern in patterns.exclude)
    return f"{excluded}(?:{'|'.join(regex(pattern) for pattern in patterns.include)})"


def dynamodb_client(endpoint: str, region: str = REGION) -> Any:
    """Return a client for the local server that ignores the user's own AWS configuration."""
    return boto3.session.Session().client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        config=Config(connect_timeout=2, read_timeout=20, retries={"total_max_attempts": 2}),
        aws_access_key_id=ANY_KEY,
        aws_secret_access_key=ANY_KEY,
    )


def _environment(packages: Path) -> Mapping[str, str]:
    # moto asks for credentials even where it checks none.
    return {"PYTHONPATH": str(packages), "PYTHONUNBUFFERED": "1", "AWS_DEFAULT_REGION": REGION, "TZ": "UTC"}
