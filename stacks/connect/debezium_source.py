"""The Debezium connector of one source on MSK Connect, with the same options as on one machine."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from connectors.deployment import Deployment
from connectors.engines.registry import engine_of
from connectors.worker import msk_source_worker
from stacks.base import TributaryStack
from stacks.connect.connector_plugin import ConnectorPlugin
from stacks.connect.msk_connector import Capacity, ConnectorParts, MskConnector
from stacks.database.secrets import read_access
from stacks.kafka.access import debezium_access
from stacks.kafka.cluster import KafkaCluster
from stacks.lake.schema_registry import schema_writing, writing_findings
from stacks.network import NetworkStack
from tributary.contract.source import Source


class DebeziumSource(MskConnector):
    """The connector of one source.

    secrets   hold the password with which Debezium logs in to the database, and the salt of hashed columns
    after     exists once the database is prepared, and the registry of schemas is there
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        source: Source,
        deployment: Deployment,
        kafka: KafkaCluster,
        network: NetworkStack,
        plugin: ConnectorPlugin,
        secrets: Sequence[secretsmanager.ISecret],
        after: Sequence[IDependable],
    ) -> None:
        stack = TributaryStack.of(scope)
        assert isinstance(stack, TributaryStack)
        offsets_topic = stack.lake.source_names(source).connect_offsets_topic
        parts = ConnectorParts(
            config=engine_of(source).render(stack.lake, source, deployment),
            plugin=plugin,
            worker=msk_source_worker(offsets_topic, stack.aws.region),
            # A database's log has one reader. A second worker would have nothing to do.
            capacity=Capacity(stack.aws.connect.debezium_mcus),
            clients=network.debezium,
            kafka=debezium_access(kafka, stack.lake, source),
            rights=[
                *(right for secret in secrets for right in read_access(secret, stack.aws.region)),
                *(schema_writing(stack) if source.format == "avro" else []),
            ],
            after=after,
            acknowledged=writing_findings(stack) if source.format == "avro" else {},
        )
        super().__init__(scope, construct_id, kafka, network, parts)
