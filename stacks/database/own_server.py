"""A database server of the lake's own for one source: its secrets, its logs, and who may connect."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IConstruct, IDependable

from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.database.engine import SourceDatabase
from stacks.database.outputs import construct_id, tell
from stacks.database.password_rotation import PasswordChange, PasswordRotation
from stacks.database.secrets import ADMIN, UNSAFE_CHARACTERS, ReplicationSecret
from stacks.network import NetworkStack
from tributary.contract.source import Source

NIST_AND_HIPAA = ("NIST.800.53.R5", "HIPAA.Security")
PACKS = (*NIST_AND_HIPAA, "PCI.DSS.321")


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


def server_name(stack: TributaryStack, source: Source) -> str:
    """Return the identifier of a source's own cluster or instance."""
    return f"{stack.names.resource}-{source.name.replace('_', '-')}"


def own_servers(stack: TributaryStack, engine: type[Source]) -> Mapping[str, str]:
    """Return the identifiers of an engine's own servers of the lake, by their sources."""
    return {
        source.name: server_name(stack, source)
        for source in stack.lake.connected_sources
        if isinstance(source, engine) and source.name not in stack.aws.source
    }


class OwnServer(Construct):
    """The database server of one source. If the data is kept, so is everything that it needs.

    replication  the secret of Debezium's user
    """

    def __init__(
        self, stack: TributaryStack, source: Source, network: NetworkStack, key: kms.IKey | None
    ) -> None:
        super().__init__(stack, construct_id(source.name))
        self._stack, self._source, self._network, self._key = stack, source, network, key
        self._identifier = server_name(stack, source)
        self.replication = ReplicationSecret(self, source, key)

    @property
    @abstractmethod
    def secret(self) -> secretsmanager.ISecret:
        """The administrator's secret. It contains the server's address."""

    @property
    @abstractmethod
    def access(self) -> DatabaseAccess:
        """How Debezium reaches it."""

    @abstractmethod
    def rotate_secret(self) -> secretsmanager.RotationSchedule:
        """Rotate the administrator's password now and every 30 days."""

    def ready_once(self, prepared: IDependable, remarks: str, change: PasswordChange) -> SourceDatabase:
        """Return the database, which is ready once `prepared` exists, and tell how to reach it.

        change  how the password of Debezium's user changes
        """
        # A password that changes during the preparation would delay it.
        self.rotate_secret().node.add_dependency(prepared)
        stack, source = self._stack, self._source
        if stack.aws.connect.rotation_days:
            PasswordRotation(
                self,
                "PasswordRotation",
                source=source,
                access=self.access,
                secret=self.replication,
                admin_secret=self.secret,
                admin=ADMIN,
                change=change,
                network=self._network,
                key=self._key,
                after=prepared,
            )
        tell(stack, source, "Endpoint", "The address of the database", self.access.host)
        tell(stack, source, "AdminSecret", "The administrator's login", self.secret.secret_arn)
        tell(stack, source, "Remarks", "Remarks on the preparation of the database", remarks)
        return SourceDatabase(self.access, self.replication, ready=prepared)

    def _access(self, host: str, port: int, options: Mapping[str, str]) -> DatabaseAccess:
        return DatabaseAccess(
            host=host,
            port=port,
            user=engine_of(self._source).user(self._stack.lake, self._source),
            password=SecretsManagerSecret(self.replication.name, "password"),
            options=options,
        )

    def _rotate(self, rotation: Rotation) -> secretsmanager.RotationSchedule:
        rotates = rotation(
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self._network.functions],
            exclude_characters=UNSAFE_CHARACTERS,
        )
        return self.secret.add_rotation_schedule(
            "Rotation", hosted_rotation=rotates, automatically_after=Duration.days(30)
        )

    def _log_groups(self, kind: str, names: tuple[str, ...]) -> list[logs.CfnLogGroup]:
        """Create the groups that RDS writes to. A group that RDS creates keeps its logs forever.

        kind  what RDS calls the server in the groups' names: cluster or instance
        """
        return [
            self._log_group(
                f"/aws/rds/{kind}/{self._identifier}/{name}", f"Logs-{name}" if number else "Logs"
            )
            for number, name in enumerate(names)
        ]

    def _log_group(self, name: str, construct_id: str) -> logs.CfnLogGroup:
        group = logs.CfnLogGroup(
            self,
            construct_id,
            log_group_name=name,
            retention_in_days=self._stack.aws.storage.logs_kept.days,
            kms_key_id=None if self._key is None else self._key.key_arn,
        )
        if self._key is None:
            acknowledge(group, _LOGS_WITHOUT_A_KEY)
            skip(group, {"CKV_AWS_158": _LOGS_OF_AWS_KEY})
        return group

    def _keep_what_the_data_needs(self, server: IConstruct) -> None:
        """Apply the server's removal policy to its parts. The CDK does so only for RETAIN."""
        for part in server.node.find_all():
            if isinstance(part, rds.CfnDBInstance | rds.CfnDBSubnetGroup):
                part.apply_removal_policy(self._stack.of_data)

    def _security_group(self, port_number: int, functions: str) -> ec2.SecurityGroup:
        """Create the group that lets clients in. `functions` says what the lake's functions do there."""
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self._network.vpc,
            description=f"Connections to the database of {self._source.name} of lake {self._stack.lake.name}",
            allow_all_outbound=False,
        )
        group.apply_removal_policy(self._stack.of_data)
        # Not the server's own rules: their port is a token, which no security pack can read.
        port = ec2.Port.tcp(port_number)
        group.add_ingress_rule(self._network.debezium, port, "Debezium")
        group.add_ingress_rule(self._network.functions, port, functions)
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


USUAL_PORT = (
    "Only the lake's connectors, and what the lake file adds, may open connections to the port. Another "
    "number would keep nobody else out."
)
"""Why a server has the port of its engine."""

UNPROTECTED = dict.fromkeys(
    (
        "AwsSolutions-RDS10",
        *(f"{pack}-RDSInstanceDeletionProtectionEnabled" for pack in NIST_AND_HIPAA),
    ),
    "[aws].protected = true switches deletion protection on once everything is deployed. Before that, "
    "CloudFormation must be able to roll back a deployment that failed after it created the server.",
)
"""Why a server can be deleted that the lake file does not protect."""

_LOGS_OF_AWS_KEY = (
    'CloudWatch Logs encrypts the group with its own key, because [aws.storage].encryption is "s3". With '
    '"kms", a key of the lake encrypts it.'
)
_LOGS_WITHOUT_A_KEY = dict.fromkeys(
    (f"{pack}-CloudWatchLogGroupEncrypted" for pack in PACKS), _LOGS_OF_AWS_KEY
)
_MONITORING = {
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/"
    "service-role/AmazonRDSEnhancedMonitoringRole]": "Only RDS may assume the role, to write the operating "
    "system's metrics to the log group that AWS has for them. AWS maintains the policy."
}
