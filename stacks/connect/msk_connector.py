"""A connector on MSK Connect with its own role, permissions, worker configuration and log group."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kafkaconnect as kafkaconnect
from constructs import Construct, IDependable

from connectors.deployment import ConnectorConfig
from connectors.worker import as_properties
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.connect.connector_plugin import ConnectorPlugin
from stacks.kafka.access import Access
from stacks.kafka.cluster import KafkaCluster
from stacks.lake.lake_formation import CatalogAccess, grant_role
from stacks.log_groups import LakeLogGroup
from stacks.network import NetworkStack

_Connector = kafkaconnect.CfnConnector
_BUSY_PERCENT, _IDLE_PERCENT = 80, 20


@dataclass(frozen=True)
class Capacity:
    """How large a connector is.

    mcus         the size of a worker; an MCU is a processor and 4 GiB
    workers_max  the most workers of a connector that scales; None for one worker that does not
    tasks_max    the most tasks of a connector that scales; None for two per MCU, whatever `tasks.max` says
    """

    mcus: int
    workers_max: int | None = None
    tasks_max: int | None = None


@dataclass(frozen=True)
class ConnectorParts:
    """What differs between connectors.

    worker        the properties of the worker configuration
    clients       the security group of the workers
    kafka         the role's permissions in Kafka
    rights        the role's other permissions
    after         what must exist before the connector starts
    catalog       the role's permissions in Lake Formation, if the lake needs them
    acknowledged  reasons for the findings of security packs that `rights` causes, by the finding's id
    """

    config: ConnectorConfig
    plugin: ConnectorPlugin
    worker: Mapping[str, str]
    capacity: Capacity
    clients: ec2.ISecurityGroup
    kafka: Access
    rights: Sequence[iam.PolicyStatement]
    after: Sequence[IDependable]
    catalog: Sequence[CatalogAccess] = ()
    acknowledged: Mapping[str, str] = field(default_factory=dict)


class MskConnector(Construct):
    """A connector whose name never changes. By its name it finds its offsets topic or its consumer group.

    Its options and its capacity change in place, but only one of them at a time (MSK Connect's API reference,
    UpdateConnector). For another plugin, worker configuration, role or version, CloudFormation replaces the
    connector, and two connectors cannot share a name. So one deployment removes the connectors, and the next
    one recreates them (`[aws.connect].running`).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        kafka: KafkaCluster,
        network: NetworkStack,
        parts: ConnectorParts,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        self._stack, self._parts = stack, parts
        self.name = parts.config.name
        logs = LakeLogGroup(self, "Logs", f"connect/{self.name}", network.log_key)
        role, policy = self._role_and_policy()
        grants = grant_role(stack, "Sink", role.role_arn, parts.catalog)
        worker = self._worker_configuration()
        if not stack.aws.connect.running:
            return
        connector = _Connector(
            self,
            "Connector",
            connector_name=self.name,
            connector_description=f"Lake {stack.lake.name}",
            kafka_connect_version=stack.aws.connect.version,
            connector_configuration=dict(parts.config.config),
            capacity=_capacity(parts.capacity),
            plugins=[
                _Connector.PluginProperty(
                    custom_plugin=_Connector.CustomPluginProperty(
                        custom_plugin_arn=parts.plugin.arn, revision=parts.plugin.revision
                    )
                )
            ],
            worker_configuration=_Connector.WorkerConfigurationProperty(
                worker_configuration_arn=worker.attr_worker_configuration_arn, revision=worker.attr_revision
            ),
            service_execution_role_arn=role.role_arn,
            kafka_cluster=_Connector.KafkaClusterProperty(
                apache_kafka_cluster=_Connector.ApacheKafkaClusterProperty(
                    bootstrap_servers=kafka.bootstrap_servers,
                    vpc=_Connector.VpcProperty(
                        subnets=network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids,
                        security_groups=[parts.clients.security_group_id],
                    ),
                )
            ),
            kafka_cluster_client_authentication=_Connector.KafkaClusterClientAuthenticationProperty(
                authentication_type="IAM"
            ),
            kafka_cluster_encryption_in_transit=_Connector.KafkaClusterEncryptionInTransitProperty(
                encryption_type="TLS"
            ),
            log_delivery=_Connector.LogDeliveryProperty(
                worker_log_delivery=_Connector.WorkerLogDeliveryProperty(
                    cloud_watch_logs=_Connector.CloudWatchLogsLogDeliveryProperty(
                        enabled=True, log_group=logs.log_group_name
                    )
                )
            ),
        )
        connector.node.add_dependency(policy, kafka.ready, *grants, *parts.after)

    def _role_and_policy(self) -> tuple[iam.Role, iam.ManagedPolicy]:
        connectors = f"arn:{Aws.PARTITION}:kafkaconnect:{self._stack.aws.region}:{Aws.ACCOUNT_ID}:connector"
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "kafkaconnect.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": f"{connectors}/{self.name}/*"},
                },
            ),
        )
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            roles=[role],
            statements=[*self._parts.kafka, *self._parts.rights],
        )
        acknowledge(policy, {**self._parts.kafka.acknowledged, **self._parts.acknowledged})
        return role, policy

    def _worker_configuration(self) -> kafkaconnect.CfnWorkerConfiguration:
        """Create the worker configuration. Its name contains its digest, because none can be changed."""
        properties = as_properties(self._parts.worker)
        digest = hashlib.sha256(properties.encode()).hexdigest()[:12]
        return kafkaconnect.CfnWorkerConfiguration(
            self,
            "Worker",
            name=f"{self.name}-{digest}",
            properties_file_content=base64.b64encode(properties.encode()).decode(),
        )


def _capacity(capacity: Capacity) -> kafkaconnect.CfnConnector.CapacityProperty:
    if capacity.workers_max is None:
        return _Connector.CapacityProperty(
            provisioned_capacity=_Connector.ProvisionedCapacityProperty(
                mcu_count=capacity.mcus, worker_count=1
            )
        )
    return _Connector.CapacityProperty(
        auto_scaling=_Connector.AutoScalingProperty(
            mcu_count=capacity.mcus,
            min_worker_count=1,
            max_worker_count=capacity.workers_max,
            max_autoscaling_task_count=capacity.tasks_max,
            scale_in_policy=_Connector.ScaleInPolicyProperty(cpu_utilization_percentage=_IDLE_PERCENT),
            scale_out_policy=_Connector.ScaleOutPolicyProperty(cpu_utilization_percentage=_BUSY_PERCENT),
        )
    )
