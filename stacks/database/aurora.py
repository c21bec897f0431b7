"""An Aurora cluster for one source, with its secrets, its log group and the rules of who may connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.database.engine import SourceDatabase
from stacks.database.outputs import construct_id, tell
from stacks.database.secrets import UNSAFE_CHARACTERS, AdminSecret, ReplicationSecret
from stacks.network import NetworkStack
from stacks.observability.metrics import writer_metric
from stacks.observability.watched import Threshold, Watched
from tributary.contract.aurora import Aurora
from tributary.contract.source import Source

_NIST_AND_HIPAA = ("NIST.800.53.R5", "HIPAA.Security")
_LEAST_LOCAL_BYTES = 5_000_000_000
PACKS = (*_NIST_AND_HIPAA, "PCI.DSS.321")


class Rotation(Protocol):
    """A rotation of the administrator's password, such as `HostedRotation.postgre_sql_single_user`."""

    def __call__(
        self,
        *,
        vpc: ec2.IVpc,
        vpc_subnets: ec2.SubnetSelection,
        security_groups: list[ec2.ISecurityGroup],
        exclude_characters: str,
    ) -> secretsmanager.HostedRotation: ...


@dataclass(frozen=True)
class AuroraEngine:
    """What differs between the engines of Aurora.

    section     of the lake file that describes the clusters
    parameters  of the cluster, with which its changes can be followed
    logs        that the cluster sends to CloudWatch Logs
    database    to create; None: none
    options     of the connector, which encrypt its connections
    reasons     why findings of checks are harmless for these clusters, by the finding's id
    """

    engine: rds.IClusterEngine
    port: int
    settings: Aurora
    section: str
    parameters: Mapping[str, str]
    logs: tuple[str, ...]
    database: str | None
    rotation: Rotation
    options: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)


def cluster_name(stack: TributaryStack, source: Source) -> str:
    """Return the identifier of a source's own cluster."""
    return f"{stack.names.resource}-{source.name.replace('_', '-')}"


def disk_alarm(settings: Aurora, source: str, cluster: str) -> list[Watched]:
    """Return what to watch of the instances' own disks, which hold temporary files. Serverless has none."""
    if settings.is_serverless:
        return []
    free = writer_metric(cluster, "FreeLocalStorage", "Minimum")
    least = Threshold(_LEAST_LOCAL_BYTES, is_least=True)
    return [Watched("database-disk", f"The writer of {source} has little disk.", free, least, source)]


def own_clusters(stack: TributaryStack, engine: type[Source]) -> Mapping[str, str]:
    """Return the identifiers of an engine's own clusters of the lake, by their sources."""
    return {
        source.name: cluster_name(stack, source)
        for source in stack.lake.connected_sources
        if isinstance(source, engine) and source.name not in stack.aws.source
    }


class AuroraCluster(Construct):
    """The database of one source, in its own cluster. If the data is kept, so is everything that it needs.

    cluster          writer and readers
    replication      the secret of Debezium's user
    parameter_group  the name of the cluster's parameter group
    """

    def __init__(
        self,
        stack: TributaryStack,
        source: Source,
        network: NetworkStack,
        key: kms.IKey | None,
        kind: AuroraEngine,
    ) -> None:
        super().__init__(stack, construct_id(source.name))
        self._stack, self._source, self._network, self._key = stack, source, network, key
        self._kind = kind
        self._identifier = cluster_name(stack, source)
        self.replication = ReplicationSecret(self, source, key)
        log_groups = [self._log_group(log) for log in kind.logs]
        self._parameters = self._parameters_for_replication()
        self.cluster = self._cluster()
        self.cluster.node.add_dependency(*log_groups)

    @property
    def secret(self) -> secretsmanager.ISecret:
        """The administrator's secret. It contains the cluster's address."""
        attached = self.cluster.secret
        assert attached is not None
        return attached

    @property
    def parameter_group(self) -> str:
        return self._parameters.bind_to_cluster().parameter_group_name

    @property
    def access(self) -> DatabaseAccess:
        """How Debezium reaches it."""
        return DatabaseAccess(
            host=self.cluster.cluster_endpoint.hostname,
            port=self._kind.port,
            user=engine_of(self._source).user(self._stack.lake, self._source),
            password=SecretsManagerSecret(self.replication.name, "password"),
            options=self._kind.options,
        )

    def rotate_secret(self) -> secretsmanager.RotationSchedule:
        """Rotate the administrator's password now and every 30 days."""
        rotation = self._kind.rotation(
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self._network.functions],
            exclude_characters=UNSAFE_CHARACTERS,
        )
        return self.secret.add_rotation_schedule(
            "Rotation", hosted_rotation=rotation, automatically_after=Duration.days(30)
        )

    def ready_once(self, prepared: IDependable, remarks: str) -> SourceDatabase:
        """Return the database, which is ready once `prepared` exists, and tell how to reach it."""
        # A password that changes during the preparation would delay it.
        self.rotate_secret().node.add_dependency(prepared)
        stack, source = self._stack, self._source
        tell(stack, source, "Endpoint", "The address of the database", self.access.host)
        tell(stack, source, "AdminSecret", "The administrator's login", self.secret.secret_arn)
        tell(stack, source, "Remarks", "Remarks on the preparation of the database", remarks)
        return SourceDatabase(self.access, self.replication, ready=prepared)

    def _log_group(self, log: str) -> logs.CfnLogGroup:
        """Create the group that Aurora writes to. A group that Aurora creates keeps its logs forever."""
        group = logs.CfnLogGroup(
            self,
            "Logs" if log == self._kind.logs[0] else f"Logs-{log}",
            log_group_name=f"/aws/rds/cluster/{self._identifier}/{log}",
            retention_in_days=self._stack.aws.storage.logs_kept.days,
            kms_key_id=None if self._key is None else self._key.key_arn,
        )
        if self._key is None:
            acknowledge(group, _LOGS_WITHOUT_A_KEY)
            skip(group, {"CKV_AWS_158": _LOGS_OF_AWS_KEY})
        return group

    def _cluster(self) -> rds.DatabaseCluster:
        settings = self._kind.settings
        cluster = rds.DatabaseCluster(
            self,
            "Cluster",
            cluster_identifier=self._identifier,
            engine=self._kind.engine,
            default_database_name=self._kind.database,
            credentials=rds.Credentials.from_secret(AdminSecret(self, self._key)),
            parameter_group=self._parameters,
            writer=self._instance("Writer"),
            readers=[
                self._instance(f"Reader{number + 1}", is_first=number == 0)
                for number in range(settings.readers)
            ],
            serverless_v2_min_capacity=settings.capacity_min if settings.is_serverless else None,
            serverless_v2_max_capacity=settings.capacity_max if settings.is_serverless else None,
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self._security_group()],
            port=self._kind.port,
            storage_encrypted=True,
            storage_encryption_key=self._key,
            iam_authentication=True,
            enable_data_api=True,
            backup=rds.BackupProps(retention=Duration.days(settings.backup_days)),
            copy_tags_to_snapshot=True,
            deletion_protection=self._stack.aws.protected,
            removal_policy=self._stack.of_data,
            cloudwatch_logs_exports=list(self._kind.logs),
            monitoring_interval=Duration.seconds(60),
            monitoring_role=self._monitoring_role(),
        )
        self._keep_what_the_data_needs(cluster)
        acknowledge(cluster, {**_backed_up_by_aurora(self._kind.section), **self._kind.reasons})
        if not self._stack.aws.protected:
            acknowledge(cluster, _UNPROTECTED)
        return cluster

    def _keep_what_the_data_needs(self, cluster: rds.DatabaseCluster) -> None:
        """Apply the cluster's removal policy to its parts. The CDK does so only for RETAIN."""
        for part in cluster.node.find_all():
            if isinstance(part, rds.CfnDBInstance | rds.CfnDBSubnetGroup):
                part.apply_removal_policy(self._stack.of_data)

    def _instance(self, name: str, is_first: bool = False) -> rds.IClusterInstance:
        if self._kind.settings.is_serverless:
            return rds.ClusterInstance.serverless_v2(
                name,
                scale_with_writer=is_first,
                auto_minor_version_upgrade=True,
                enable_performance_insights=True,
                performance_insight_encryption_key=self._key,
            )
        return rds.ClusterInstance.provisioned(
            name,
            instance_type=ec2.InstanceType(self._kind.settings.instance.removeprefix("db.")),
            auto_minor_version_upgrade=True,
            enable_performance_insights=True,
            performance_insight_encryption_key=self._key,
        )

    def _parameters_for_replication(self) -> rds.ParameterGroup:
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=self._kind.engine,
            description=f"Logical replication for lake {self._stack.lake.name}",
            parameters=dict(self._kind.parameters),
            removal_policy=self._stack.of_data,
        )

    def _security_group(self) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self._network.vpc,
            description=f"Connections to the database of {self._source.name} of lake {self._stack.lake.name}",
            allow_all_outbound=False,
        )
        group.apply_removal_policy(self._stack.of_data)
        # Not the cluster's own rules: their port is a token, which no security pack can read.
        port = ec2.Port.tcp(self._kind.port)
        group.add_ingress_rule(self._network.debezium, port, "Debezium")
        group.add_ingress_rule(self._network.functions, port, "rotation of the secret")
        if self._network.admin is not None:
            group.add_ingress_rule(self._network.admin, port, "admin host")
        return group

    def _monitoring_role(self) -> iam.Role:
        role = iam.Role(
            self,
            "Monitoring",
            assumed_by=iam.ServicePrincipal("monitoring.rds.amazonaws.com"),
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AmazonRDSEnhancedMonitoringRole")
            ],
        )
        role.apply_removal_policy(self._stack.of_data)
        acknowledge(role, _MONITORING)
        return role


def _backed_up_by_aurora(section: str) -> Mapping[str, str]:
    return dict.fromkeys(
        (f"{pack}-RDSInBackupPlan" for pack in _NIST_AND_HIPAA),
        f"Aurora backs up the cluster continuously and keeps backups for {section}.backup_days. A backup "
        "plan would name an instance, which holds no data.",
    )


_LOGS_OF_AWS_KEY = (
    'CloudWatch Logs encrypts the group with its own key, because [aws.storage].encryption is "s3". With '
    '"kms", a key of the lake encrypts it.'
)
_LOGS_WITHOUT_A_KEY = dict.fromkeys(
    (f"{pack}-CloudWatchLogGroupEncrypted" for pack in PACKS), _LOGS_OF_AWS_KEY
)
_UNPROTECTED = dict.fromkeys(
    (
        "AwsSolutions-RDS10",
        *(f"{pack}-RDSInstanceDeletionProtectionEnabled" for pack in _NIST_AND_HIPAA),
    ),
    "[aws].protected = true switches deletion protection on once everything is deployed. Before that, "
    "CloudFormation must be able to roll back a deployment that failed after it created the cluster.",
)
_MONITORING = {
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/"
    "service-role/AmazonRDSEnhancedMonitoringRole]": "Only RDS may assume the role, to write the operating "
    "system's metrics to the log group that AWS has for them. AWS maintains the policy."
}
