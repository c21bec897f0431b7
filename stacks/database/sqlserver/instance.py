"""An Amazon RDS instance of SQL Server for one source: its storage, its parameters and its backups."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.certificates import REGIONS
from connectors.deployment import DatabaseAccess
from connectors.engines.sqlserver.connector import ENCRYPTED, VERIFIED_ON_AWS
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.database.own_server import NIST_AND_HIPAA, UNPROTECTED, USUAL_PORT, OwnServer
from stacks.database.secrets import AdminSecret
from stacks.network import NetworkStack
from tributary.contract.engines.sqlserver import PORT, RdsSqlServer
from tributary.contract.source import Source

_LOGS = ("error", "agent")
"""The logs of the server, and of SQL Server Agent, which runs the jobs of CDC."""


def is_verified(stack: TributaryStack) -> bool:
    """Tell whether the roots of the region's certificates are known, and so a server's is verified."""
    return stack.aws.region in REGIONS


class SqlServerInstance(OwnServer):
    """The database of one source, on its own instance.

    instance        with a standby in another zone if the lake file says so
    security_group  with the rules that let the lake's clients in
    """

    def __init__(
        self, stack: TributaryStack, source: Source, network: NetworkStack, key: kms.IKey | None
    ) -> None:
        super().__init__(stack, source, network, key)
        log_groups = self._log_groups("instance", _LOGS)
        self.security_group = self._security_group(PORT, "preparation, and rotation of the secret")
        self.instance = self._instance(stack.aws.sqlserver)
        self.instance.node.add_dependency(*log_groups)

    @property
    def secret(self) -> secretsmanager.ISecret:
        attached = self.instance.secret
        assert attached is not None
        return attached

    @property
    def access(self) -> DatabaseAccess:
        options = VERIFIED_ON_AWS if is_verified(self._stack) else ENCRYPTED
        return self._access(self.instance.db_instance_endpoint_address, PORT, options)

    def rotate_secret(self) -> secretsmanager.RotationSchedule:
        return self._rotate(secretsmanager.HostedRotation.sql_server_single_user)

    def _instance(self, settings: RdsSqlServer) -> rds.DatabaseInstance:
        engine = _engine(settings)
        grows = settings.storage_max_gb > settings.storage_gb
        instance = rds.DatabaseInstance(
            self,
            "Instance",
            instance_identifier=self._identifier,
            engine=engine,
            license_model=rds.LicenseModel.LICENSE_INCLUDED,
            instance_type=ec2.InstanceType(settings.instance.removeprefix("db.")),
            credentials=rds.Credentials.from_secret(AdminSecret(self, self._key)),
            parameter_group=self._parameters(engine),
            vpc=self._network.vpc,
            vpc_subnets=self._network.private,
            security_groups=[self.security_group],
            port=PORT,
            publicly_accessible=False,
            multi_az=settings.standby,
            storage_type=rds.StorageType.GP3,
            allocated_storage=settings.storage_gb,
            max_allocated_storage=settings.storage_max_gb if grows else None,
            storage_encrypted=True,
            storage_encryption_key=self._key,
            backup_retention=Duration.days(settings.backup_days),
            copy_tags_to_snapshot=True,
            auto_minor_version_upgrade=True,
            deletion_protection=self._stack.aws.protected,
            removal_policy=self._stack.of_data,
            cloudwatch_logs_exports=list(_LOGS),
            enable_performance_insights=True,
            performance_insight_encryption_key=self._key,
            monitoring_interval=Duration.seconds(60),
            monitoring_role=self._monitoring_role(),
        )
        self._keep_what_the_data_needs(instance)
        acknowledge(instance, {**_BACKED_UP_BY_RDS, "AwsSolutions-RDS11": USUAL_PORT})
        if not self._stack.aws.protected:
            acknowledge(instance, UNPROTECTED)
        if not settings.standby:
            acknowledge(instance, _NO_STANDBY)
            skip(instance, {"CKV_AWS_157": _WITHOUT_STANDBY})
        return instance

    def _parameters(self, engine: rds.IInstanceEngine) -> rds.ParameterGroup:
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=engine,
            description=f"Encrypted connections for lake {self._stack.lake.name}",
            parameters={"rds.force_ssl": "1"},
            removal_policy=self._stack.of_data,
        )


def _engine(settings: RdsSqlServer) -> rds.IInstanceEngine:
    full = settings.engine_version
    version = rds.SqlServerEngineVersion.of(full, ".".join(full.split(".")[:2]))
    if settings.edition == "enterprise":
        return rds.DatabaseInstanceEngine.sql_server_ee(version=version)
    return rds.DatabaseInstanceEngine.sql_server_se(version=version)


_BACKED_UP_BY_RDS: Mapping[str, str] = dict.fromkeys(
    (f"{pack}-RDSInBackupPlan" for pack in NIST_AND_HIPAA),
    "Amazon RDS backs up the instance every day and its log every five minutes, and keeps both for "
    "[aws.sqlserver].backup_days.",
)
_WITHOUT_STANDBY = (
    "[aws.sqlserver].standby is false: a standby doubles the cost of the instance and its licence. Without "
    "one, Amazon RDS starts the instance again where it was, or a person restores a backup."
)
_NO_STANDBY: Mapping[str, str] = dict.fromkeys(
    ("AwsSolutions-RDS3", *(f"{pack}-RDSMultiAZSupport" for pack in NIST_AND_HIPAA)), _WITHOUT_STANDBY
)
