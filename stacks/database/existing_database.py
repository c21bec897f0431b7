"""A database that already exists: its secret, and a check in the deployment that it is prepared."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.certificates import RDS_ROOTS
from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, acknowledge_function, skip
from stacks.database.engine import SourceDatabase
from stacks.database.outputs import beside_the_templates, construct_id, shown_path, tell
from stacks.database.secrets import read_access
from stacks.function_code import NO_CALL_LOST, ONE_CALL, write_code
from stacks.functions import database_check
from stacks.log_groups import LakeLogGroup
from stacks.network import ANY_INTERFACE, NetworkStack, attachment_to_the_vpc
from tributary.contract.source import ExistingDatabase, Source

_FUNCTION = Path(database_check.__path__[0])


def add_existing_database(
    stack: TributaryStack,
    source: Source,
    database: ExistingDatabase,
    network: NetworkStack,
    *,
    script: str,
    command: Callable[[str], str],
    login: Mapping[str, str],
    query: str,
    options: Mapping[str, str],
) -> SourceDatabase:
    """Write the administrator's SQL beside the templates, and check in the deployment that it has run.

    command  returns what runs the SQL, from the path of its file
    login    as in `ExistingDatabaseCheck`, and so is `query`
    options  of the connector, which encrypt its connections
    """
    place = Construct(stack, construct_id(source.name))
    secret = _secret_of(place, database)
    file = beside_the_templates(stack, f"{source.name}.sql")
    file.write_text(script)
    run = command(shown_path(file))
    tell(stack, source, "Sql", "What an administrator of the database runs once", run)
    ExistingDatabaseCheck(
        place,
        "Check",
        source=source,
        database=database,
        secret=secret,
        network=network,
        login=login,
        query=query,
        script=script,
        remedy=f"An administrator of the database runs the SQL that cdk synth wrote: {run}. "
        "Then deploy again.",
    )
    access = DatabaseAccess(
        host=database.host,
        port=database.port,
        user=engine_of(source).user(stack.lake, source),
        password=SecretsManagerSecret(_secret_name(database.secret), "password"),
        options=options,
    )
    return SourceDatabase(access, secret, ready=place)


def _secret_of(place: Construct, database: ExistingDatabase) -> secretsmanager.ISecret:
    """Return the secret with the password of Debezium's user."""
    key = database.secret_key
    return secretsmanager.Secret.from_secret_attributes(
        place,
        "Secret",
        secret_complete_arn=database.secret,
        encryption_key=None if key is None else kms.Key.from_key_arn(place, "SecretKey", key),
    )


def _secret_name(arn: str) -> str:
    """Return the secret's name, without the hyphen and six characters that Secrets Manager appends."""
    return re.sub(r"-[0-9A-Za-z]{6}\Z", "", arn.split(":secret:", 1)[-1])


class ExistingDatabaseCheck(Construct):
    """A custom resource that fails the deployment until the database is prepared.

    login   the properties with which the function logs in, besides address, user and secret
    query   returns one row of text for each problem
    script  the SQL that the administrator runs. The check runs again when the script changes.
    remedy  what to do, for the message of a failed deployment
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: Source,
        database: ExistingDatabase,
        secret: secretsmanager.ISecret,
        network: NetworkStack,
        login: Mapping[str, str],
        query: str,
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
            shutil.copyfile(RDS_ROOTS, Path(folder, RDS_ROOTS.name))
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
                "User": engine_of(source).user(stack.lake, source),
                "Secret": secret.secret_arn,
                **login,
                "Query": query,
                "Script": hashlib.sha256(script.encode()).hexdigest(),
                "Remedy": remedy,
            },
        )
