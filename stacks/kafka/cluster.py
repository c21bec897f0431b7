"""The Amazon MSK cluster, the lake's own or an existing one, and the names and addresses for its clients."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Fn
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_msk as msk
from constructs import Construct, DependencyGroup, IDependable

from connectors.worker import as_properties
from stacks.base import TributaryStack
from stacks.kafka.bootstrap_servers import BootstrapServers
from stacks.kafka.settings import server_properties
from stacks.log_groups import LakeLogGroup
from stacks.network import NetworkStack
from tributary.contract.aws import Aws as AwsSettings
from tributary.contract.aws import ExistingCluster, Kafka
from tributary.contract.aws_checks import IAM_PORT as KAFKA_PORT

_STORAGE_USED_PERCENT = 60
"""The use at which MSK enlarges the brokers' volumes by a tenth, at most once in six hours."""


class KafkaCluster(Construct):
    """The lake's Kafka cluster. If it exists already, only its security group changes, to let the clients in.

    arn                of the cluster
    bootstrap_servers  for clients that log in with IAM
    security_group     of the brokers. It lets in the lake's clients.
    ready              a dependency on the cluster and the lake's topics. Topics add themselves.
    is_serverless      whether a function must create the topics
    """

    def __init__(self, scope: Construct, construct_id: str, network: NetworkStack) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        existing = stack.aws.kafka.cluster
        self._stack, self._name = stack, kafka_name(stack)
        self.is_serverless = stack.aws.kafka.kind == "serverless"
        self._topics = DependencyGroup()
        self.ready: IDependable = self._topics
        if existing is None:
            self.security_group = self._own_group(network)
            cluster = self._serverless(network) if self.is_serverless else self._provisioned(network)
            cluster.apply_removal_policy(stack.of_data)
            self._topics.add(cluster)
            self.arn = cluster.attr_arn
            self.bootstrap_servers = BootstrapServers(self, "Bootstrap", self.arn, network.log_key).servers
        else:
            self.security_group = self._existing_group(existing, network)
            self.arn, self.bootstrap_servers = existing.arn, existing.bootstrap_servers
        self._uuid_export = f"{stack.stack_name}-kafka-uuid"
        CfnOutput(self, "Uuid", value=self._uuid(), export_name=self._uuid_export)

    def made_ready_by(self, topic: IDependable) -> None:
        self._topics.add(topic)

    def topic_arn(self, name: str) -> str:
        """Return a topic's ARN. Here and below, `name` may end in `*`."""
        return self.arn_of("topic", name)

    def group_arn(self, name: str) -> str:
        return self.arn_of("group", name)

    def transactional_id_arn(self, name: str) -> str:
        return self.arn_of("transactional-id", name)

    def arn_of(self, kind: str, name: str) -> str:
        """Return an ARN for another stack. It imports the id by a literal name: all policies look alike."""
        return f"{self._place}:{kind}/{self._name}/{Fn.import_value(self._uuid_export)}/{name}"

    def own_topic_arn(self, name: str) -> str:
        """Return a topic's ARN for the cluster's own stack, which cannot import its own export."""
        return f"{self._place}:topic/{self._name}/{self._uuid()}/{name}"

    def finding_of(self, kind: str, name: str) -> str:
        """Return `arn_of` as it appears in a security pack's finding."""
        place = f"arn:<AWS::Partition>:kafka:{self._stack.aws.region}:<AWS::AccountId>"
        return f"{place}:{kind}/{self._name}/{self._uuid_export}/{name}"

    @property
    def _place(self) -> str:
        return f"arn:{Aws.PARTITION}:kafka:{self._stack.aws.region}:{Aws.ACCOUNT_ID}"

    def _uuid(self) -> str:
        """The id at the end of the ARN, by which MSK tells clusters with the same name apart."""
        existing = self._stack.aws.kafka.cluster
        return Fn.select(2, Fn.split("/", self.arn)) if existing is None else existing.uuid

    def _own_group(self, network: NetworkStack) -> ec2.ISecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "Brokers",
            vpc=network.vpc,
            description=f"Kafka brokers of lake {self._stack.lake.name}",
            allow_all_outbound=False,
        )
        _let_in(group, network)
        # A retained cluster still uses its group.
        group.apply_removal_policy(self._stack.of_data)
        return group

    def _existing_group(self, existing: ExistingCluster, network: NetworkStack) -> ec2.ISecurityGroup:
        group = ec2.SecurityGroup.from_security_group_id(self, "Brokers", existing.security_group)
        _let_in(group, network)
        return group

    def _serverless(self, network: NetworkStack) -> msk.CfnServerlessCluster:
        return msk.CfnServerlessCluster(
            self,
            "Serverless",
            cluster_name=self._name,
            client_authentication=msk.CfnServerlessCluster.ClientAuthenticationProperty(
                sasl=msk.CfnServerlessCluster.SaslProperty(
                    iam=msk.CfnServerlessCluster.IamProperty(enabled=True)
                )
            ),
            vpc_configs=[
                msk.CfnServerlessCluster.VpcConfigProperty(
                    subnet_ids=network.private_subnet_ids,
                    security_groups=[self.security_group.security_group_id],
                )
            ],
        )

    def _provisioned(self, network: NetworkStack) -> msk.CfnCluster:
        aws = self._stack.aws
        kafka, of = aws.kafka, msk.CfnCluster
        logs = LakeLogGroup(self, "Logs", "kafka", network.log_key)
        enabled = of.JmxExporterProperty(enabled_in_broker=kafka.open_monitoring)
        cluster = of(
            self,
            "Provisioned",
            cluster_name=self._name,
            kafka_version=kafka.version,
            number_of_broker_nodes=aws.brokers,
            broker_node_group_info=of.BrokerNodeGroupInfoProperty(
                instance_type=kafka.broker,
                client_subnets=network.private_subnet_ids,
                security_groups=[self.security_group.security_group_id],
                storage_info=self._volumes(kafka),
            ),
            configuration_info=self._configuration(aws),
            client_authentication=of.ClientAuthenticationProperty(
                sasl=of.SaslProperty(iam=of.IamProperty(enabled=True), scram=of.ScramProperty(enabled=False)),
                unauthenticated=of.UnauthenticatedProperty(enabled=False),
            ),
            encryption_info=of.EncryptionInfoProperty(
                encryption_in_transit=of.EncryptionInTransitProperty(client_broker="TLS", in_cluster=True),
                encryption_at_rest=self._own_key(),
            ),
            enhanced_monitoring=kafka.monitoring,
            open_monitoring=of.OpenMonitoringProperty(
                prometheus=of.PrometheusProperty(
                    jmx_exporter=enabled,
                    node_exporter=of.NodeExporterProperty(enabled_in_broker=kafka.open_monitoring),
                )
            ),
            logging_info=of.LoggingInfoProperty(
                broker_logs=of.BrokerLogsProperty(
                    cloud_watch_logs=of.CloudWatchLogsProperty(enabled=True, log_group=logs.log_group_name)
                )
            ),
        )
        if not kafka.is_express:
            self._grow_volumes(cluster, kafka)
        return cluster

    def _own_key(self) -> msk.CfnCluster.EncryptionAtRestProperty | None:
        if self._stack.aws.storage.encryption != "kms":
            return None
        key = kms.Key(
            self,
            "Key",
            description=f"Kafka's volumes of lake {self._stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=self._stack.of_data,
        )
        return msk.CfnCluster.EncryptionAtRestProperty(data_volume_kms_key_id=key.key_arn)

    def _volumes(self, kafka: Kafka) -> msk.CfnCluster.StorageInfoProperty | None:
        if kafka.is_express:
            return None
        return msk.CfnCluster.StorageInfoProperty(
            ebs_storage_info=msk.CfnCluster.EBSStorageInfoProperty(volume_size=kafka.storage_gb)
        )

    def _configuration(self, aws: AwsSettings) -> msk.CfnCluster.ConfigurationInfoProperty:
        configuration = msk.CfnConfiguration(
            self,
            "Configuration",
            name=self._name,
            server_properties=as_properties(server_properties(aws.kafka, self._stack.lake.max_event_mb)),
        )
        configuration.apply_removal_policy(self._stack.of_data)
        return msk.CfnCluster.ConfigurationInfoProperty(
            arn=configuration.attr_arn, revision=configuration.attr_latest_revision_revision
        )

    def _grow_volumes(self, cluster: msk.CfnCluster, kafka: Kafka) -> None:
        # MSK scales under its service-linked role. The CDK's own construct would create an unused role.
        target = autoscaling.CfnScalableTarget(
            self,
            "Storage",
            service_namespace="kafka",
            resource_id=cluster.attr_arn,
            scalable_dimension="kafka:broker-storage:VolumeSize",
            min_capacity=1,
            max_capacity=kafka.storage_max_gb,
        )
        policy = autoscaling.CfnScalingPolicy
        policy(
            self,
            "StorageUsed",
            policy_name=f"{self._name}-storage",
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=policy.TargetTrackingScalingPolicyConfigurationProperty(
                predefined_metric_specification=policy.PredefinedMetricSpecificationProperty(
                    predefined_metric_type="KafkaBrokerStorageUtilization"
                ),
                target_value=_STORAGE_USED_PERCENT,
                disable_scale_in=True,  # A volume never shrinks.
            ),
        )


def kafka_name(stack: TributaryStack) -> str:
    """Return the name of the lake's Kafka cluster."""
    existing = stack.aws.kafka.cluster
    return stack.names.resource if existing is None else existing.name


def _let_in(group: ec2.ISecurityGroup, network: NetworkStack) -> None:
    for whose in ("debezium", "sink", "spark", "functions", "admin"):
        client: ec2.SecurityGroup | None = getattr(network, whose)
        if client is not None:
            group.add_ingress_rule(client, ec2.Port.tcp(KAFKA_PORT), f"{whose}: Kafka with IAM")
