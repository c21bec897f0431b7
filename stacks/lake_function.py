"""A Lambda function of a lake, with its log, its role, and the reasons for what checks find in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.checks.findings import acknowledge, acknowledge_function, skip
from stacks.log_groups import LakeLogGroup
from stacks.network import ANY_INTERFACE, NetworkStack, attachment_to_the_vpc
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.artifacts.zips import unpack_zip

ONE_CALL = "CloudFormation calls it once in a deployment, so there are never two calls at a time."
NO_CALL_LOST = (
    "The function answers CloudFormation in every case, and a failure fails the deployment. No call is lost."
)
ONLY_APIS = "It calls only AWS's APIs, and nothing in the VPC."


@dataclass(frozen=True)
class InVpc:
    """In the lake's private subnets, with this security group."""

    network: NetworkStack
    group: ec2.ISecurityGroup


@dataclass(frozen=True)
class OutsideVpc:
    """In no VPC, for this reason."""

    reason: str = ONLY_APIS


@dataclass(frozen=True)
class Reasons:
    """Why a function needs no reserved concurrency, and no queue of calls that failed.

    any_resource  why a function in the VPC has further permissions on any resource; empty: it has none
    """

    no_reservation: str = ONE_CALL
    no_dead_letters: str = NO_CALL_LOST
    any_resource: str = ""


@dataclass(frozen=True)
class LakeFunction:
    """A function. Without its policy, it can do nothing."""

    function: lambda_.Function
    policy: iam.ManagedPolicy


def add_function(
    scope: Construct,
    write_code: Callable[[Path], object],
    place: InVpc | OutsideVpc,
    *,
    description: str,
    log: str,
    log_key: kms.IKey | None,
    permits: str | None,
    statements: Sequence[iam.PolicyStatement],
    timeout: Duration,
    memory_mb: int = 256,
    handler: str = "main.handle",
    reasons: Reasons | None = None,
    environment: Mapping[str, str] | None = None,
) -> LakeFunction:
    """Add a function in Python to a construct, which can have only one.

    write_code  writes it to an empty folder
    environment  variables, which hold no secret
    log         of what its log group is
    permits     describes its policy, which also lets it write its log
    """
    log_group = LakeLogGroup(scope, "Logs", log, log_key)
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    in_vpc = place if isinstance(place, InVpc) else None
    policy = iam.ManagedPolicy(
        scope,
        "Policy",
        description=permits,
        roles=[role],
        statements=[
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn]
            ),
            *statements,
            *([attachment_to_the_vpc()] if in_vpc else []),
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        write_code(Path(folder))
        function = lambda_.Function(
            scope,
            "Function",
            description=description,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            handler=handler,
            code=lambda_.Code.from_asset(folder),
            role=role.without_policy_updates(),
            vpc=in_vpc.network.vpc if in_vpc else None,
            vpc_subnets=in_vpc.network.private if in_vpc else None,
            security_groups=[in_vpc.group] if in_vpc else None,
            log_group=log_group,
            timeout=timeout,
            memory_size=memory_mb,
            environment=environment,
        )
    function.node.add_dependency(policy)
    why = reasons or Reasons()
    if in_vpc:
        any_resource = f"{ANY_INTERFACE} {why.any_resource}".strip()
        acknowledge(policy, {"AwsSolutions-IAM5[Resource::*]": any_resource})
        skip(policy, {"CKV_AWS_111": any_resource})
    if environment:
        skip(function, {"CKV_AWS_173": _NO_SECRETS})
    acknowledge_function(
        function,
        no_reservation=why.no_reservation,
        no_dead_letters=why.no_dead_letters,
        no_vpc=None if isinstance(place, InVpc) else place.reason,
    )
    return LakeFunction(function, policy)


_NO_SECRETS = "The variables hold names and addresses. Lambda encrypts them with its own key."


def write_main(function: Path, folder: Path) -> None:
    """Write `main.py` of the folder `function` to an empty folder."""
    shutil.copyfile(function / "main.py", folder / "main.py")


def write_main_and_wheels(function: Path, folder: Path) -> None:
    """Write `main.py` and the wheels of `requirements.txt` in the folder `function` to an empty folder."""
    write_main(function, folder)
    for wheel in fetch_wheels(function / "requirements.txt", LAMBDA):
        unpack_zip(wheel, folder)
