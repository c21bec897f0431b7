"""The registry of the servers on this machine."""

from __future__ import annotations

from tributary.local.apicurio import ApicurioServer
from tributary.local.connect import ConnectWorker
from tributary.local.dynamodb import DynamoDbServer
from tributary.local.kafka import KafkaBroker
from tributary.local.kinesis import KinesisServer
from tributary.local.local_server import LocalServer
from tributary.local.mariadb import MariaDbServer
from tributary.local.postgres import PostgresServer
from tributary.local.s3 import S3Server

ALL_SERVERS: tuple[type[LocalServer], ...] = (
    PostgresServer,
    MariaDbServer,
    KafkaBroker,
    S3Server,
    ApicurioServer,
    KinesisServer,
    DynamoDbServer,
    ConnectWorker,
)
"""In the order in which `tributary status` lists them."""

SERVICES = tuple(server.service for server in ALL_SERVERS)

SERVICES_OF_EVERY_LAKE = tuple(server.service for server in ALL_SERVERS if server.of_every_lake)
"""The services of each lake that has a database as a source."""
