"""Prepare a SQL Server in a deployment, and record new and changed tables every minute."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from connectors.certificates import RDS_ROOTS
from connectors.engines.sqlserver import session
from connectors.engines.sqlserver.catalog import SECONDS_BEHIND
from connectors.engines.sqlserver.names import connector_user
from connectors.engines.sqlserver.own_database import (
    IS_CDC_ON,
    ONE_AT_A_TIME,
    creation,
    own_table_names,
    removal_batches,
    retention,
    unrecorded_query,
)
from connectors.engines.sqlserver.preparation import (
    batches_before_capture,
    capture_batch,
    heartbeat_statement,
    in_database,
    password_statement,
)
from connectors.engines.sqlserver.prepared_check import missing_setup_query
from stacks.base import TributaryStack
from stacks.database.engine import SourceDatabase
from stacks.database.password_rotation import PasswordChange
from stacks.database.schedule import call_regularly
from stacks.database.secrets import ADMIN
from stacks.database.sqlserver.instance import SqlServerInstance, is_verified
from stacks.functions import bootstrap, sqlserver_bootstrap
from stacks.functions.rotation.databases import PASSWORD as ROTATED
from stacks.functions.sqlserver_bootstrap.preparation import PASSWORD, SqlServerPreparation
from stacks.lake_function import InVpc, Reasons, add_function
from stacks.network import NetworkStack
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.artifacts.zips import unpack_zip
from tributary.contract.aws_names import METRICS_NAMESPACE
from tributary.contract.engines.sqlserver import PORT, RdsSqlServer, SqlServerSource
from tributary.contract.lake import Lake

_FUNCTION = Path(sqlserver_bootstrap.__path__[0])
_BOOTSTRAP = Path(bootstrap.__path__[0])
_PROJECT = _FUNCTION.parents[2]


class SqlServerBootstrap(Construct):
    """The function that prepares the lake's own SQL Servers. It is in the VPC, because it logs in there.

    function    fails if Debezium could not read a database
    permission  the function's policy, without which it can do nothing
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        instances: Sequence[SqlServerInstance],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        added = add_function(
            self,
            write_code,
            InVpc(network, network.functions),
            description="Prepares SQL Servers for Debezium",
            log="sqlserver-bootstrap",
            log_key=network.log_key,
            permits="Prepares SQL Servers for Debezium",
            statements=[*_secrets(instances, key), _METRICS],
            timeout=Duration.minutes(15),
            handler=f"{sqlserver_bootstrap.__name__}.main.handle",
            reasons=Reasons(_NO_RESERVATION, _NO_DEAD_LETTERS),
        )
        self.function, self.permission = added.function, added.policy


def prepared(
    stack: TributaryStack, source: SqlServerSource, server: SqlServerInstance, function: SqlServerBootstrap
) -> SourceDatabase:
    """Return the database, prepared by the deployment, and looked after by a schedule."""
    of_server = {
        "Host": server.access.host,
        "Port": str(PORT),
        "SslMode": "verified" if is_verified(stack) else "required",
        "AdminUser": ADMIN,
        "AdminSecret": server.secret.secret_arn,
        "Preparation": preparation(stack.lake, source, stack.aws.sqlserver).to_json(),
    }
    resource = CustomResource(
        server,
        "Prepared",
        resource_type="Custom::TributaryPreparedSqlServer",
        service_token=function.function.function_arn,
        service_timeout=Duration.minutes(16),
        properties={
            # With another instance or database, CloudFormation deletes the former resource.
            "Cluster": server.instance.instance_arn,
            "Database": source.database,
            "ReplicationSecret": server.replication.secret_arn,
            **of_server,
        },
    )
    # CloudFormation deletes in the reverse order: the function must still reach the server then.
    resource.node.add_dependency(server.instance, server.security_group, function.permission)
    call_regularly(
        server,
        function.function,
        stack.to_json_string(
            {
                "Namespace": METRICS_NAMESPACE,
                "Lake": stack.lake.name,
                "Source": source.name,
                **of_server,
            }
        ),
        resource,
        description=f"Records new and changed tables of {source.name}",
        permits="Calls the function that records new and changed tables",
    )
    statement = password_statement(stack.lake, source, ROTATED)
    change = PasswordChange("sqlserver", source.database, statement)
    return server.ready_once(resource, resource.get_att_string("Remarks"), change)


def preparation(lake: Lake, source: SqlServerSource, settings: RdsSqlServer) -> SqlServerPreparation:
    """Return the SQL and names with which the function prepares a source."""
    return SqlServerPreparation(
        database=source.database,
        user=connector_user(lake, source),
        creation=creation(source),
        opening=(in_database(source), ONE_AT_A_TIME),
        setup=batches_before_capture(lake, source),
        capture=capture_batch(lake, source),
        afterwards=(
            heartbeat_statement(lake, source),
            *retention(settings.kept_minutes, has_standby=settings.standby),
        ),
        login=password_statement(lake, source, PASSWORD),
        is_cdc_on=IS_CDC_ON,
        missing=missing_setup_query(lake, source),
        unrecorded=unrecorded_query(lake, source),
        age=SECONDS_BEHIND,
        own_tables=own_table_names(lake, source),
        removal=removal_batches(lake, source),
    )


def write_code(folder: Path) -> None:
    """Write the function, the project's modules that it imports, its wheels, and the certificates' roots."""
    here = folder / _FUNCTION.relative_to(_PROJECT)
    shutil.copytree(_FUNCTION, here, ignore=shutil.ignore_patterns("__pycache__", "requirements.*"))
    shutil.copyfile(RDS_ROOTS, here / RDS_ROOTS.name)
    for module in (Path(session.__file__), *(_BOOTSTRAP / name for name in _OF_BOOTSTRAP)):
        copy = folder / module.relative_to(_PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, copy)
    for wheel in fetch_wheels(_FUNCTION / "requirements.txt", LAMBDA):
        unpack_zip(wheel, folder)


def _secrets(instances: Sequence[SqlServerInstance], key: kms.IKey | None) -> list[iam.PolicyStatement]:
    secrets = [secret for each in instances for secret in (each.secret, each.replication)]
    statements = [
        iam.PolicyStatement(
            actions=["secretsmanager:GetSecretValue"], resources=[secret.secret_arn for secret in secrets]
        )
    ]
    if key is not None:
        statements.append(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[key.key_arn]))
    return statements


_OF_BOOTSTRAP = ("__init__.py", "answers.py")
"""The modules of the other bootstrap functions with which this one answers CloudFormation."""

_METRICS = iam.PolicyStatement(
    actions=["cloudwatch:PutMetricData"],
    resources=["*"],
    conditions={"StringEquals": {"cloudwatch:namespace": METRICS_NAMESPACE}},
)
_NO_RESERVATION = (
    "CloudFormation calls it in a deployment, and the schedule once a minute, each time for seconds. A "
    "second call waits in the database. A reservation would reduce the concurrency of an account that may "
    "have little."
)
_NO_DEAD_LETTERS = (
    "CloudFormation gets an answer in every case, and the schedule tries again a minute later. No request "
    "is worth keeping."
)
