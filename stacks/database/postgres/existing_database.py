"""A check in the deployment: an existing PostgreSQL is prepared, and its administrator's SQL has run."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.engines.postgres.names import replication_user
from connectors.engines.postgres.prepared_check import missing_preparation_query
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, acknowledge_function, skip
from stacks.database.secrets import read_access
from stacks.function_code import NO_CALL_LOST, ONE_CALL, write_code
from stacks.functions import database_check
from stacks.log_groups import LakeLogGroup
from stacks.network import ANY_INTERFACE, NetworkStack, attachment_to_the_vpc
from tributary.contract.engines.postgres import ExistingPostgres, PostgresSource

_FUNCTION = Path(database_check.__path__[0])


class ExistingDatabaseCheck(Construct):
    """A custom resource that fails the deployment until the database is prepared.

    script  the SQL that the administrator runs. The check runs again when the script changes.
    remedy  what to do, for the message of a failed deployment
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: PostgresSource,
        database: ExistingPostgres,
        secret: secretsmanager.ISecret,
        network: NetworkStack,
        script: str,
        remedy: str,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        log_group = LakeLogGroup(self, "Logs", f"database-check/{source.name}", network.log_key)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"Checks the database of {source.name}",
            roles=[role],
            statements=[
                iam.PolicyStatement(
                    actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn]
                ),
                *read_access(secret, stack.aws.region),
                attachment_to_the_vpc(),
            ],
        )
        acknowledge(policy, {"AwsSolutions-IAM5[Resource::*]": ANY_INTERFACE})
        skip(policy, {"CKV_AWS_111": ANY_INTERFACE})
        with tempfile.TemporaryDirectory() as folder:
            write_code(_FUNCTION, Path(folder))
            function = lambda_.Function(
                self,
                "Function",
                description=f"Checks the database of {source.name}",
                runtime=lambda_.Runtime.PYTHON_3_14,
                architecture=lambda_.Architecture.ARM_64,
                handler="main.handle",
                code=lambda_.Code.from_asset(folder),
                role=role.without_policy_updates(),
                vpc=network.vpc,
                vpc_subnets=network.private,
                # The database already lets Debezium in, or will not work anyway.
                security_groups=[network.debezium],
                log_group=log_group,
                timeout=Duration.minutes(3),
                memory_size=256,
            )
        function.node.add_dependency(policy)
        acknowledge_function(function, no_reservation=ONE_CALL, no_dead_letters=NO_CALL_LOST)
        CustomResource(
            self,
            "Checked",
            resource_type="Custom::TributaryCheckedDatabase",
            service_token=function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={
                "Host": database.host,
                "Port": str(database.port),
                "Database": source.database,
                "User": replication_user(stack.lake, source),
                "Secret": secret.secret_arn,
                "SslMode": database.sslmode,
                "Query": missing_preparation_query(stack.lake, source),
                "Script": hashlib.sha256(script.encode()).hexdigest(),
                "Remedy": remedy,
            },
        )
