"""The function that prepares the lake's own databases in a deployment: one of each engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.database.aurora import AuroraCluster
from stacks.functions import bootstrap as function
from stacks.lake_function import OutsideVpc, Reasons, add_function
from tributary import tickit

_PROJECT = Path(tickit.__file__).parents[2]


class BootstrapFunction(Construct):
    """The function that prepares an engine's databases through the RDS Data API. It is in no VPC.

    databases   the databases that it may prepare
    handler     the module and the function in it that the engine's requests go to
    statements  further permissions
    key         encrypts their secrets; None: Secrets Manager's own key does
    log_key     as in LakeLogGroup
    function    fails if a table that the lake takes cannot be published
    permission  the function's policy, without which it can do nothing
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        databases: Sequence[AuroraCluster],
        key: kms.IKey | None,
        log_key: kms.IKey | None,
        *,
        handler: str,
        log: str,
        statements: Sequence[iam.PolicyStatement] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        added = add_function(
            self,
            _write_code,
            OutsideVpc(_NO_VPC),
            description="Prepares databases for replication",
            log=log,
            log_key=log_key,
            permits="Prepares databases for replication",
            statements=[*_in_databases(databases), *statements, *_secrets(databases, key)],
            timeout=Duration.minutes(15),
            memory_mb=512,
            handler=f"{function.__name__}.{handler}",
            reasons=Reasons(_NO_RESERVATION, _NO_DEAD_LETTERS),
        )
        self.function, self.permission = added.function, added.policy


def _in_databases(databases: Sequence[AuroraCluster]) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        actions=[
            "rds-data:BeginTransaction",
            "rds-data:CommitTransaction",
            "rds-data:ExecuteStatement",
            "rds-data:RollbackTransaction",
        ],
        resources=[each.cluster.cluster_arn for each in databases],
    )


def _secrets(databases: Sequence[AuroraCluster], key: kms.IKey | None) -> Iterator[iam.PolicyStatement]:
    secrets = [secret for each in databases for secret in (each.secret, each.replication)]
    yield iam.PolicyStatement(
        actions=["secretsmanager:GetSecretValue"], resources=[secret.secret_arn for secret in secrets]
    )
    if key is not None:
        yield iam.PolicyStatement(actions=["kms:Decrypt"], resources=[key.key_arn])


def _write_code(folder: Path) -> None:
    """Write the function's modules, and the demo's modules that it imports, laid out as in the project."""
    for package in (function, tickit):
        source = Path(package.__path__[0])
        shutil.copytree(
            source,
            folder / source.relative_to(_PROJECT),
            ignore=shutil.ignore_patterns("__pycache__", *_NOT_NEEDED),
        )


_NOT_NEEDED = ("load.py", "workload.py")
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
