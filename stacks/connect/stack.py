"""The connect stack: a Debezium connector for each source, and the sink that keeps every event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import Aws, CfnOutput
from constructs import Construct

from connectors.deployment import Deployment, GlueCatalog, MskIamKafka, SecretsManagerSecret
from stacks.base import TributaryStack
from stacks.connect.bronze_sink import BronzeSink
from stacks.connect.connector_plugin import ConnectorPlugin, ConnectPlugins
from stacks.connect.debezium_source import DebeziumSource
from stacks.database.registry import ENGINES_ON_AWS
from stacks.kafka.settings import topic_policy
from stacks.kafka.stack import StreamingStack
from stacks.lake.schema_registry import registry_access
from stacks.network import NetworkStack
from tributary.contract.aws_names import HASH_SALT_KEY, Output
from tributary.contract.lake import Lake

if TYPE_CHECKING:
    from stacks.database.stack import DatabaseStack
    from stacks.lake.stack import LakeStack


class ConnectStack(TributaryStack):
    """The connect stack.

    sources  the Debezium connectors, by the source's name
    sink     the connector that writes bronze

    The stack holds no data. The position of each connector is in Kafka and in the databases.
    """

    def __init__(
        self,
        scope: Construct,
        lake: Lake,
        network: NetworkStack,
        lake_stack: LakeStack,
        database: DatabaseStack,
        streaming: StreamingStack,
        plugins: ConnectPlugins,
    ) -> None:
        super().__init__(scope, "connect", lake, "connectors of MSK Connect")
        kafka, salt = streaming.kafka, database.hash_salt
        deployment = Deployment(
            kafka=MskIamKafka(kafka.bootstrap_servers),
            catalog=GlueCatalog(self.aws.region),
            bronze_bucket=self.names.bucket("bronze", Aws.ACCOUNT_ID, self.aws.region),
            databases=database.access,
            topics=topic_policy(self.aws.kafka, lake.max_event_mb),
            hash_salt=None if salt is None else SecretsManagerSecret(salt.name, HASH_SALT_KEY),
            registry=registry_access(self),
        )
        source_plugins = {
            engine: ConnectorPlugin(self, ENGINES_ON_AWS[engine].plugin_construct, plugin)
            for engine, plugin in plugins.sources.items()
        }
        self.sources = {
            source.name: DebeziumSource(
                self,
                f"Source-{source.name}",
                source,
                deployment,
                kafka,
                network,
                source_plugins[source.engine],
                [database.secrets[source.name], *([salt] if salt and lake.hashes_columns_of(source) else [])],
                [database.ready[source.name], lake_stack],
            )
            for source in lake.connected_sources
        }
        self.sink = BronzeSink(
            self,
            "Sink",
            deployment,
            kafka,
            network,
            ConnectorPlugin(self, "SinkPlugin", plugins.sink),
            lake_stack.key,
            after=[lake_stack],
        )
        connectors = [*(connector.name for connector in self.sources.values()), self.sink.name]
        CfnOutput(self, Output.CONNECTORS, value=json.dumps(connectors))
