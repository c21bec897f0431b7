"""An Aurora PostgreSQL cluster with logical replication, and its secrets."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.certificates import REGIONS
from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.postgres.connector import encrypted_on_aws
from connectors.engines.postgres.names import replication_user
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.database.outputs import construct_id
from stacks.database.postgres.prepared_database import DatabaseToPrepare
from stacks.database.secrets import UNSAFE_CHARACTERS, AdminSecret, ReplicationSecret
from stacks.network import NetworkStack
from tributary.contract.engines.postgres import PORT, PostgresSource

_SERVERLESS = "db.serverless"
_NIST_AND_HIPAA = ("NIST.800.53.R5", "HIPAA.Security")
_PACKS = (*_NIST_AND_HIPAA, "PCI.DSS.321")


class PostgresCluster(Construct):
    """The database of one source, in its own cluster. If the data is kept, so is everything that it needs.

    cluster      writer and readers
    replication  the secret of Debezium's role
    """

    def __init__(
        self, stack: TributaryStack, source: PostgresSource, network: NetworkStack, key: kms.IKey | None
    ) -> None:
        super().__init__(stack, construct_id(source.name))
        self._stack, self._source, self._network, self._key = stack, source, network, key
        self._identifier = f"{stack.names.resource}-{source.name.replace('_', '-')}"
        self.replication = ReplicationSecret(self, source, key)
        log_group = self._log_group()
        self._parameters = self._logical_replication()
        self.cluster = self._cluster()
        self.cluster.node.add_dependency(log_group)

    @property
    def secret(self) -> secretsmanager.ISecret:
        """The administrator's secret. It contains the cluster's address."""
        attached = self.cluster.secret
        assert attached is not None
        return attached

    @property
    def to_prepare(self) -> DatabaseToPrepare:
        return DatabaseToPrepare(self.cluster, self._parameter_group, self.secret, self.replication)

    @property
    def _parameter_group(self) -> str:
        """The name of the cluster's parameter group."""
        return self._parameters.bind_to_cluster().parameter_group_name

    @property
    def access(self) -> DatabaseAccess:
        """How Debezium reaches it. In a region whose roots are not known, no certificate is verified."""
        return DatabaseAccess(
            host=self.cluster.cluster_endpoint.hostname,
            port=PORT,
            user=replication_user(self._stack.lake, self._source),
            password=SecretsManagerSecret(self.replication.name, "password"),
            options=encrypted_on_aws("verify-full" if self._stack.aws.region in REGIONS else "require"),
        )

    def rotate_secret(self) -> secretsmanager.RotationSchedule:
        """Rotate the administrator's password now and every 30 days."""
        rotation = secretsmanager.HostedRotation.postgre_sql_single_user(
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self._network.functions],
            exclude_characters=UNSAFE_CHARACTERS,
        )
        return self.secret.add_rotation_schedule(
            "Rotation", hosted_rotation=rotation, automatically_after=Duration.days(30)
        )

    def _log_group(self) -> logs.CfnLogGroup:
        """Create the group that Aurora writes to. A group that Aurora creates keeps its logs forever."""
        group = logs.CfnLogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/rds/cluster/{self._identifier}/postgresql",
            retention_in_days=self._stack.aws.storage.logs_kept.days,
            kms_key_id=None if self._key is None else self._key.key_arn,
        )
        if self._key is None:
            acknowledge(group, _LOGS_WITHOUT_A_KEY)
            skip(group, {"CKV_AWS_158": _LOGS_OF_AWS_KEY})
        return group

    def _cluster(self) -> rds.DatabaseCluster:
        settings = self._stack.aws.database
        cluster = rds.DatabaseCluster(
            self,
            "Cluster",
            cluster_identifier=self._identifier,
            engine=self._engine,
            default_database_name=self._source.database,
            credentials=rds.Credentials.from_secret(AdminSecret(self, self._key)),
            parameter_group=self._parameters,
            writer=self._instance("Writer"),
            readers=[
                self._instance(f"Reader{number + 1}", is_first=number == 0)
                for number in range(settings.readers)
            ],
            serverless_v2_min_capacity=settings.capacity_min if self._is_serverless else None,
            serverless_v2_max_capacity=settings.capacity_max if self._is_serverless else None,
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self._security_group()],
            port=PORT,
            storage_encrypted=True,
            storage_encryption_key=self._key,
            iam_authentication=True,
            enable_data_api=True,
            backup=rds.BackupProps(retention=Duration.days(settings.backup_days)),
            copy_tags_to_snapshot=True,
            deletion_protection=self._stack.aws.protected,
            removal_policy=self._stack.of_data,
            cloudwatch_logs_exports=["postgresql"],
            monitoring_interval=Duration.seconds(60),
            monitoring_role=self._monitoring_role(),
        )
        self._keep_what_the_data_needs(cluster)
        acknowledge(cluster, _BACKED_UP_BY_AURORA)
        if not self._stack.aws.protected:
            acknowledge(cluster, _UNPROTECTED)
        return cluster

    def _keep_what_the_data_needs(self, cluster: rds.DatabaseCluster) -> None:
        """Apply the cluster's removal policy to its parts. The CDK does so only for RETAIN."""
        for part in cluster.node.find_all():
            if isinstance(part, rds.CfnDBInstance | rds.CfnDBSubnetGroup):
                part.apply_removal_policy(self._stack.of_data)

    @property
    def _engine(self) -> rds.IClusterEngine:
        version = self._stack.aws.database.engine_version
        return rds.DatabaseClusterEngine.aurora_postgres(
            version=rds.AuroraPostgresEngineVersion.of(version, version.partition(".")[0])
        )

    @property
    def _is_serverless(self) -> bool:
        return self._stack.aws.database.instance == _SERVERLESS

    def _instance(self, name: str, is_first: bool = False) -> rds.IClusterInstance:
        if self._is_serverless:
            return rds.ClusterInstance.serverless_v2(
                name,
                scale_with_writer=is_first,
                auto_minor_version_upgrade=True,
                enable_performance_insights=True,
                performance_insight_encryption_key=self._key,
            )
        return rds.ClusterInstance.provisioned(
            name,
            instance_type=ec2.InstanceType(self._stack.aws.database.instance.removeprefix("db.")),
            auto_minor_version_upgrade=True,
            enable_performance_insights=True,
            performance_insight_encryption_key=self._key,
        )

    def _logical_replication(self) -> rds.ParameterGroup:
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=self._engine,
            description=f"Logical replication for lake {self._stack.lake.name}",
            parameters={
                "rds.logical_replication": "1",
                "rds.force_ssl": "1",
                "max_replication_slots": "20",
                "max_wal_senders": "20",
                # Milliseconds without an answer from Debezium until its slot is free again.
                "wal_sender_timeout": "60000",
            },
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
        group.add_ingress_rule(self._network.debezium, ec2.Port.tcp(PORT), "Debezium")
        group.add_ingress_rule(self._network.functions, ec2.Port.tcp(PORT), "rotation of the secret")
        if self._network.admin is not None:
            group.add_ingress_rule(self._network.admin, ec2.Port.tcp(PORT), "admin host")
        if self._network.verify is not None:
            group.add_ingress_rule(self._network.verify, ec2.Port.tcp(PORT), "verification")
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


_LOGS_OF_AWS_KEY = (
    'CloudWatch Logs encrypts the group with its own key, because [aws.storage].encryption is "s3". With '
    '"kms", a key of the lake encrypts it.'
)
_LOGS_WITHOUT_A_KEY = dict.fromkeys(
    (f"{pack}-CloudWatchLogGroupEncrypted" for pack in _PACKS), _LOGS_OF_AWS_KEY
)
_BACKED_UP_BY_AURORA = dict.fromkeys(
    (f"{pack}-RDSInBackupPlan" for pack in _NIST_AND_HIPAA),
    "Aurora backs up the cluster continuously and keeps backups for [aws.database].backup_days. A backup "
    "plan would name an instance, which holds no data.",
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
