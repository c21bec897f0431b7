"""A database that already exists: its secret, and a check in the deployment that it is prepared."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.certificates import RDS_ROOTS
from connectors.deployment import DatabaseAccess, SecretsManagerSecret
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.database.engine import SourceDatabase
from stacks.database.outputs import beside_the_templates, construct_id, shown_path, tell
from stacks.database.secrets import read_access
from stacks.functions import database_check
from stacks.lake_function import InVpc, add_function, write_main_and_wheels
from stacks.network import NetworkStack
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
        added = add_function(
            self,
            _write_code,
            # The database already lets Debezium in, or will not work anyway.
            InVpc(network, network.debezium),
            description=f"Checks the database of {source.name}",
            log=f"database-check/{source.name}",
            log_key=network.log_key,
            permits=f"Checks the database of {source.name}",
            statements=read_access(secret, stack.aws.region),
            timeout=Duration.minutes(3),
        )
        CustomResource(
            self,
            "Checked",
            resource_type="Custom::TributaryCheckedDatabase",
            service_token=added.function.function_arn,
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


def _write_code(folder: Path) -> None:
    write_main_and_wheels(_FUNCTION, folder)
    shutil.copyfile(RDS_ROOTS, folder / RDS_ROOTS.name)
