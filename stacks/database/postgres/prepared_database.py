"""Prepare databases in a deployment: one function per stack, and one custom resource per database."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_rds as rds
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.engines.postgres.names import publication, replication_slot, replication_user
from connectors.engines.postgres.preparation import (
    patterns_without_table_query,
    removal_statements,
    setup_statements,
    unpublished_tables_query,
)
from stacks.base import TributaryStack
from stacks.functions import bootstrap as function
from stacks.functions.bootstrap.preparation import Preparation
from stacks.lake_function import OutsideVpc, Reasons, add_function
from tributary import tickit
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake

_PROJECT = Path(tickit.__file__).parents[2]
_REFRESH_MINUTES = 1


@dataclass(frozen=True)
class DatabaseToPrepare:
    """A cluster, with the names and secrets that its preparation uses.

    parameters   the name of its parameter group
    secret       of the administrator
    replication  the secret of the role that Debezium logs in as
    """

    cluster: rds.DatabaseCluster
    parameters: str
    secret: secretsmanager.ISecret
    replication: secretsmanager.ISecret


class BootstrapFunction(Construct):
    """The function that prepares the stack's databases through the RDS Data API. It is in no VPC.

    databases   the databases that it may prepare
    key         encrypts their secrets; None: Secrets Manager's own key does
    log_key     as in LakeLogGroup
    function    fails if a table that the lake takes cannot be published
    permission  the function's policy, without which it can do nothing
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        databases: Sequence[DatabaseToPrepare],
        key: kms.IKey | None,
        log_key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        added = add_function(
            self,
            _write_code,
            OutsideVpc(_NO_VPC),
            description="Prepares databases for replication",
            log="bootstrap",
            log_key=log_key,
            permits="Prepares databases for replication",
            statements=_statements(stack.aws.region, databases, key),
            timeout=Duration.minutes(15),
            memory_mb=512,
            handler=f"{function.__name__}.main.handle",
            reasons=Reasons(_NO_RESERVATION, _NO_DEAD_LETTERS),
        )
        self.function, self.permission = added.function, added.policy


class PreparedDatabase(Construct):
    """A database that is prepared for Debezium. A schedule publishes new tables every minute.

    remarks  text for a person, available once the database is prepared
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        lake: Lake,
        source: PostgresSource,
        database: DatabaseToPrepare,
        bootstrap: BootstrapFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        properties = {
            "Cluster": database.cluster.cluster_arn,
            "Database": source.database,
            "AdminSecret": database.secret.secret_arn,
            "ReplicationSecret": database.replication.secret_arn,
            "ParameterGroup": database.parameters,
            "SlotMegabytes": str(stack.aws.database.slot_wal_gb * 1024),
            "Preparation": preparation(lake, source, has_demo=stack.aws.database.demo_schema).to_json(),
        }
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::TributaryPreparedDatabase",
            service_token=bootstrap.function.function_arn,
            service_timeout=Duration.minutes(16),
            properties=properties,
        )
        # The cluster as a whole, with the instance that answers.
        resource.node.add_dependency(database.cluster, bootstrap.permission)
        self.remarks = resource.get_att_string("Remarks")
        self._schedule_refresh(stack.to_json_string(properties), bootstrap.function, resource)

    def _schedule_refresh(self, request: str, bootstrap: lambda_.Function, prepared: CustomResource) -> None:
        role = iam.Role(self, "ScheduleRole", assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self,
            "SchedulePolicy",
            description="Calls the function that publishes new tables",
            statements=[
                iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[bootstrap.function_arn])
            ],
            roles=[role],
        )
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            description="Publishes new tables",
            schedule_expression=f"rate({_REFRESH_MINUTES} minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=bootstrap.function_arn,
                role_arn=role.role_arn,
                input=request,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(maximum_retry_attempts=0),
            ),
        )
        schedule.node.add_dependency(policy, prepared)


def preparation(lake: Lake, source: PostgresSource, *, has_demo: bool) -> Preparation:
    """Return the SQL and names with which the function prepares a source."""
    return Preparation(
        role=replication_user(lake, source),
        publication=publication(lake, source),
        slot=replication_slot(lake, source),
        setup=setup_statements(lake, source),
        removal=removal_statements(lake, source),
        unpublished=unpublished_tables_query(lake, source),
        patterns_without_table=patterns_without_table_query(source),
        has_demo=has_demo,
    )


def _statements(
    region: str, databases: Sequence[DatabaseToPrepare], key: kms.IKey | None
) -> list[iam.PolicyStatement]:
    secrets = [secret for each in databases for secret in (each.secret, each.replication)]
    statements = [
        iam.PolicyStatement(
            actions=[
                "rds-data:BeginTransaction",
                "rds-data:CommitTransaction",
                "rds-data:ExecuteStatement",
                "rds-data:RollbackTransaction",
            ],
            resources=[each.cluster.cluster_arn for each in databases],
        ),
        iam.PolicyStatement(
            actions=["rds:ModifyDBClusterParameterGroup"],
            resources=[
                f"arn:{Aws.PARTITION}:rds:{region}:{Aws.ACCOUNT_ID}:cluster-pg:{each.parameters}"
                for each in databases
            ],
        ),
        iam.PolicyStatement(
            actions=["secretsmanager:GetSecretValue"], resources=[secret.secret_arn for secret in secrets]
        ),
    ]
    if key is not None:
        statements.append(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[key.key_arn]))
    return statements


def _write_code(folder: Path) -> None:
    """Write the function's modules, and the demo's modules that it imports, laid out as in the project."""
    for package in (function, tickit):
        source = Path(package.__path__[0])
        shutil.copytree(
            source,
            folder / source.relative_to(_PROJECT),
            ignore=shutil.ignore_patterns("__pycache__", *_WITH_PSYCOPG),
        )


_WITH_PSYCOPG = ("load.py", "workload.py")
"""Modules of the demo that the function does not need and could not import."""

_NO_RESERVATION = (
    "CloudFormation calls it in a deployment, and the schedule once a minute, each time for seconds. A "
    "second call waits in the database. A reservation would reduce the concurrency of an account that may "
    "have little."
)
_NO_DEAD_LETTERS = (
    "CloudFormation gets an answer in every case, and the schedule tries again a minute later. No request "
    "is worth keeping."
)
_NO_VPC = (
    "It opens no connection into the VPC. It reaches the database through the RDS Data API, which IAM guards."
)
