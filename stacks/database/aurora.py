"""An Aurora cluster for one source: its instances, its parameters and its backups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.deployment import DatabaseAccess
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.database.own_server import NIST_AND_HIPAA, UNPROTECTED, OwnServer, Rotation
from stacks.database.secrets import AdminSecret
from stacks.metrics import writer_metric
from stacks.network import NetworkStack
from stacks.watched import Threshold, Watched
from tributary.contract.aurora import Aurora
from tributary.contract.source import Source

_LEAST_LOCAL_BYTES = 5_000_000_000


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


def disk_alarm(settings: Aurora, source: str, cluster: str) -> list[Watched]:
    """Return what to watch of the instances' own disks, which hold temporary files. Serverless has none."""
    if settings.is_serverless:
        return []
    free = writer_metric(cluster, "FreeLocalStorage", "Minimum")
    least = Threshold(_LEAST_LOCAL_BYTES, is_least=True)
    return [Watched("database-disk", f"The writer of {source} has little disk.", free, least, source)]


class AuroraCluster(OwnServer):
    """The database of one source, in its own cluster.

    cluster          writer and readers
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
        super().__init__(stack, source, network, key)
        self._kind = kind
        log_groups = self._log_groups("cluster", kind.logs)
        self._parameters = self._parameters_for_replication()
        self.cluster = self._cluster()
        self.cluster.node.add_dependency(*log_groups)

    @property
    def secret(self) -> secretsmanager.ISecret:
        attached = self.cluster.secret
        assert attached is not None
        return attached

    @property
    def parameter_group(self) -> str:
        return self._parameters.bind_to_cluster().parameter_group_name

    @property
    def access(self) -> DatabaseAccess:
        return self._access(self.cluster.cluster_endpoint.hostname, self._kind.port, self._kind.options)

    def rotate_secret(self) -> secretsmanager.RotationSchedule:
        return self._rotate(self._kind.rotation)

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
            security_groups=[self._security_group(self._kind.port, "rotation of the secret")],
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
            acknowledge(cluster, UNPROTECTED)
        return cluster

    def _instance(self, name: str, *, is_first: bool = False) -> rds.IClusterInstance:
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


def _backed_up_by_aurora(section: str) -> Mapping[str, str]:
    return dict.fromkeys(
        (f"{pack}-RDSInBackupPlan" for pack in NIST_AND_HIPAA),
        f"Aurora backs up the cluster continuously and keeps backups for {section}.backup_days. A backup "
        "plan would name an instance, which holds no data.",
    )
