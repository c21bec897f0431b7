"""Rotate the password of Debezium's user in one of the lake's own databases."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import botocore
from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from connectors.certificates import RDS_ROOTS, REGIONS
from connectors.deployment import DatabaseAccess
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.database.schedule import call_regularly
from stacks.functions import rotation
from stacks.functions.rotation.connector import MODELS
from stacks.functions.rotation.databases import ROOTS, Address
from stacks.functions.rotation.main import TARGET, Target
from stacks.lake_function import InVpc, Reasons, add_function
from stacks.network import NetworkStack
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.artifacts.zips import unpack_zip
from tributary.contract.aws_names import METRICS_NAMESPACE
from tributary.contract.source import Source

MINUTES = 5
"""How often the function looks whether the secret, the database and the connector have the same password."""

_FUNCTION = Path(rotation.__path__[0])
_PROJECT = _FUNCTION.parents[2]
_MODEL = Path("kafkaconnect", "2021-09-14", "service-2.json.gz")


@dataclass(frozen=True)
class PasswordChange:
    """How an engine changes a user's password.

    engine     as the lake file calls it
    database   to log in to; empty: none
    statement  with `rotation.databases.PASSWORD` in the place of the password
    """

    engine: str
    database: str
    statement: str


class PasswordRotation(Construct):
    """The rotation of one secret: its schedule, and a function that can do nothing but that.

    Secrets Manager calls the function for each rotation, the first time at once. A schedule calls it to
    finish what a rotation left undone.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: Source,
        access: DatabaseAccess,
        secret: secretsmanager.ISecret,
        admin_secret: secretsmanager.ISecret,
        admin: str,
        change: PasswordChange,
        network: NetworkStack,
        key: kms.IKey | None,
        after: IDependable,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        connector = stack.lake.source_names(source).connector
        target = Target(
            namespace=METRICS_NAMESPACE,
            lake=stack.lake.name,
            source=source.name,
            secret=secret.secret_arn,
            address=Address(
                change.engine, access.host, access.port, change.database, stack.aws.region in REGIONS
            ),
            user=engine_of(source).user(stack.lake, source),
            statement=change.statement,
            admin=admin,
            admin_secret=admin_secret.secret_arn,
            connector=connector,
        )
        added = add_function(
            self,
            write_code,
            InVpc(network, network.functions),
            description=f"Rotates the password of {source.name}",
            log=f"password-rotation/{source.name}",
            log_key=network.log_key,
            permits=f"Rotates the password of {source.name}",
            statements=[
                *_secrets(stack, secret, admin_secret, key),
                *_of_connector(stack, connector),
            ],
            timeout=Duration.minutes(10),
            handler=f"{rotation.__name__}.main.handle",
            reasons=Reasons(_NO_RESERVATION, _NO_DEAD_LETTERS, _ANY_CONNECTOR),
            environment={TARGET: stack.to_json_string(asdict(target))},
        )
        acknowledge(added.policy, _findings(stack, connector))
        called = lambda_.CfnPermission(
            self,
            "Called",
            action="lambda:InvokeFunction",
            function_name=added.function.function_arn,
            principal="secretsmanager.amazonaws.com",
            source_account=Aws.ACCOUNT_ID,
        )
        schedule = secretsmanager.CfnRotationSchedule(
            self,
            "Rotation",
            secret_id=secret.secret_arn,
            rotation_lambda_arn=added.function.function_arn,
            rotation_rules=secretsmanager.CfnRotationSchedule.RotationRulesProperty(
                automatically_after_days=stack.aws.connect.rotation_days
            ),
        )
        # The database gives the user its first password.
        schedule.node.add_dependency(called, added.policy, after)
        call_regularly(
            self,
            added.function,
            "{}",
            schedule,
            description=f"Looks after the password of {source.name}",
            permits="Calls the function that looks after a password",
            minutes=MINUTES,
        )


def write_code(folder: Path) -> None:
    """Write the function, what it imports, its wheels, the certificates' roots, and MSK Connect's API."""
    here = folder / _FUNCTION.relative_to(_PROJECT)
    shutil.copytree(_FUNCTION, here, ignore=shutil.ignore_patterns("__pycache__", "requirements.*"))
    shutil.copyfile(RDS_ROOTS, here / ROOTS.name)
    (here / MODELS.name / _MODEL).parent.mkdir(parents=True)
    shutil.copyfile(Path(botocore.__path__[0]) / "data" / _MODEL, here / MODELS.name / _MODEL)
    for module in _IMPORTED:
        (folder / module).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_PROJECT / module, folder / module)
    for wheel in fetch_wheels(_FUNCTION / "requirements.txt", LAMBDA):
        unpack_zip(wheel, folder)


_IMPORTED = (
    "stacks/functions/bootstrap/__init__.py",
    "stacks/functions/bootstrap/scram.py",
    "connectors/engines/sqlserver/session.py",
)
"""The project's modules that the function imports, in its own folders."""


def _secrets(
    stack: TributaryStack,
    secret: secretsmanager.ISecret,
    admin_secret: secretsmanager.ISecret,
    key: kms.IKey | None,
) -> list[iam.PolicyStatement]:
    statements = [
        iam.PolicyStatement(
            actions=[
                "secretsmanager:DescribeSecret",
                "secretsmanager:GetSecretValue",
                "secretsmanager:PutSecretValue",
                "secretsmanager:UpdateSecretVersionStage",
            ],
            resources=[secret.secret_arn],
        ),
        iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[admin_secret.secret_arn]),
    ]
    if key is not None:
        via = f"secretsmanager.{stack.aws.region}.amazonaws.com"
        statements.append(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key.key_arn],
                conditions={"StringEquals": {"kms:ViaService": via}},
            )
        )
    return statements


def _of_connector(stack: TributaryStack, connector: str) -> list[iam.PolicyStatement]:
    found, operations = _arns(stack, connector)
    return [
        # MSK Connect has no permission to list some connectors only.
        iam.PolicyStatement(actions=["kafkaconnect:ListConnectors"], resources=["*"]),
        iam.PolicyStatement(
            actions=["kafkaconnect:DescribeConnector", "kafkaconnect:RestartConnector"], resources=[found]
        ),
        iam.PolicyStatement(actions=["kafkaconnect:DescribeConnectorOperation"], resources=[operations]),
    ]


def _arns(stack: TributaryStack, connector: str) -> tuple[str, str]:
    """Return the ARNs of the connector and its operations, to which MSK Connect appends ids."""
    place = f"arn:{Aws.PARTITION}:kafkaconnect:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    return f"{place}:connector/{connector}/*", f"{place}:connector-operation/{connector}/*"


def _findings(stack: TributaryStack, connector: str) -> dict[str, str]:
    found = {}
    for arn in _arns(stack, connector):
        shown = arn.replace(Aws.PARTITION, "<AWS::Partition>").replace(Aws.ACCOUNT_ID, "<AWS::AccountId>")
        found[f"AwsSolutions-IAM5[Resource::{shown}]"] = _BY_AWS
    return found


_BY_AWS = "MSK Connect appends an id of its choice to the connector's name."
_ANY_CONNECTOR = "MSK Connect has no permission to list some connectors only."
_NO_RESERVATION = (
    "Secrets Manager calls it four times in a rotation, and the schedule every five minutes, each time for "
    "seconds. Two calls at a time do no harm. A reservation would reduce the concurrency of an account that "
    "may have little."
)
_NO_DEAD_LETTERS = (
    "The labels of the secret's versions say what is left to do. The schedule tries again five minutes later."
)
