"""The sources' databases: the stack creates those that do not exist yet, and checks the others."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from connectors.deployment import DatabaseAccess
from stacks.base import TributaryStack
from stacks.database.engine import SourceDatabase
from stacks.database.items.stream import ItemStreamAndTables
from stacks.database.key import DatabaseKey
from stacks.database.registry import engine_on_aws, own_sources
from stacks.database.secrets import HashSalt
from stacks.network import NetworkStack
from tributary.contract.lake import Lake


class DatabaseStack(TributaryStack):
    """The database stack.

    databases  the database of each source, by its name
    own        the databases that the stack creates, because no `[aws.source.NAME]` names an existing one
    key        encrypts the stack's own databases, streams and secrets. None: AWS's own keys do.
    streams    the streams of items that the stack creates, by the source's name
    hash_salt  the salt of hashed columns; None: no table has any
    """

    def __init__(self, scope: Construct, lake: Lake, network: NetworkStack) -> None:
        super().__init__(scope, "database", lake, "source databases, prepared for replication")
        self.databases: dict[str, SourceDatabase] = {
            source.name: engine_on_aws(source).add_existing(
                self, source, self.aws.source[source.name], network
            )
            for source in lake.connected_sources
            if source.name in self.aws.source
        }
        self.own: dict[str, SourceDatabase] = {}
        own = own_sources(lake)
        encrypts = self.aws.storage.encryption == "kms" and bool(own or lake.hashes_columns or self.aws.items)
        self.key: kms.IKey | None = (
            DatabaseKey(self, "Key", [engine.servers for engine in own] or ["cluster"]) if encrypts else None
        )
        for engine, sources in own.items():
            self.own.update(engine.add_own(self, sources, network, self.key))
        self.databases.update(self.own)
        self.hash_salt: HashSalt | None = HashSalt(self, self.key) if lake.hashes_columns else None
        self.streams: dict[str, ItemStreamAndTables] = {
            source.name: ItemStreamAndTables(
                self, source.name, source.item_stream, self.aws.items[source.name], self.key
            )
            for source in lake.item_sources
            if source.name in self.aws.items and source.item_stream is not None
        }

    @property
    def access(self) -> dict[str, DatabaseAccess]:
        """How Debezium reaches each database."""
        return {name: database.access for name, database in self.databases.items()}

    @property
    def secrets(self) -> dict[str, secretsmanager.ISecret]:
        """The secret of each database that Debezium logs in with."""
        return {name: database.secret for name, database in self.databases.items()}

    @property
    def ready(self) -> dict[str, IDependable]:
        """What exists once each database is prepared."""
        return {name: database.ready for name, database in self.databases.items()}
