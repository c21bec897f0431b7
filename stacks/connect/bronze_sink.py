"""The connector that keeps every event in the bronze bucket: the Iceberg sink, or one of the user's own."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IDependable

from connectors import iceberg_sink
from connectors.deployment import ConnectorConfig, Deployment
from connectors.worker import msk_sink_worker
from stacks.base import TributaryStack
from stacks.connect.connector_plugin import ConnectorPlugin
from stacks.connect.msk_connector import Capacity, ConnectorParts, MskConnector
from stacks.kafka.access import iceberg_sink_access, other_sink_access
from stacks.kafka.cluster import KafkaCluster
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.lake_formation import writing_tables
from stacks.network import NetworkStack
from tributary.contract.aws import OtherSink
from tributary.contract.lake import Lake


class BronzeSink(MskConnector):
    """The connector that writes bronze.

    key    encrypts the bronze bucket; None if S3's own keys do
    after  what must exist before the connector starts: bucket and catalog
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        kafka: KafkaCluster,
        network: NetworkStack,
        plugin: ConnectorPlugin,
        key: kms.IKey | None,
        after: Sequence[IDependable],
    ) -> None:
        stack = TributaryStack.of(scope)
        assert isinstance(stack, TributaryStack)
        lake, region, connect = stack.lake, stack.aws.region, stack.aws.connect
        other = connect.sink
        bucket = f"arn:{Aws.PARTITION}:s3:::{deployment.bronze_bucket}"
        parts = ConnectorParts(
            config=(
                iceberg_sink.render(lake, deployment)
                if other is None
                else other_sink_config(lake, other, deployment.bronze_bucket, region)
            ),
            plugin=plugin,
            worker=msk_sink_worker(),
            capacity=Capacity(
                connect.sink_mcus,
                connect.sink_workers_max,
                # Each task of the Iceberg sink adds its own files to every commit.
                tasks_max=connect.sink_workers_max if other is None else None,
            ),
            clients=network.sink,
            kafka=(iceberg_sink_access if other is None else other_sink_access)(kafka, lake),
            rights=[
                *(_iceberg_rights(lake, bucket, region) if other is None else _other_rights(bucket)),
                *use_of_key(key, region),
            ],
            after=after,
            catalog=[writing_tables(lake.names.bronze_namespace)] if other is None else [],
            acknowledged=_reasons(lake, stack.names.bucket("bronze", "<AWS::AccountId>", region), other),
        )
        super().__init__(scope, construct_id, kafka, network, parts)


def other_sink_config(lake: Lake, sink: OtherSink, bucket: str, region: str) -> ConnectorConfig:
    """Return the config of the user's own sink: its options, and the topics of the lake's tables."""
    config = {
        option: text.replace("{bucket}", bucket).replace("{region}", region)
        for option, text in sink.config.items()
    }
    return ConnectorConfig(lake.names.bronze_connector, {**config, "topics.regex": lake.table_topics_regex})


def _iceberg_rights(lake: Lake, bucket: str, region: str) -> list[iam.PolicyStatement]:
    """Return the permissions on the table's files, in the folder of its name, and on its catalog entry.

    The sink asks for the database first and creates none, because it exists.
    """
    catalog = f"arn:{Aws.PARTITION}:glue:{region}:{Aws.ACCOUNT_ID}"
    database, table = lake.names.bronze_table.split(".")
    entries = [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{table}"]
    return [
        *writing(bucket, f"{bucket}/{table}/*"),
        iam.PolicyStatement(
            actions=["glue:CreateTable", "glue:GetDatabase", "glue:GetTable", "glue:UpdateTable"],
            resources=entries,
        ),
    ]


def _other_rights(bucket: str) -> list[iam.PolicyStatement]:
    """Return the permissions to put files anywhere in the bucket."""
    return writing(bucket, f"{bucket}/*")


def _reasons(lake: Lake, bucket: str, other: OtherSink | None) -> dict[str, str]:
    objects = "*" if other is not None else f"{lake.names.bronze_table.split('.')[1]}/*"
    return {
        f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{bucket}/{objects}]": (
            "The sink chooses the names of its files as it writes them. The bucket holds nothing else."
        )
    }
