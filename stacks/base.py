"""The common base of a lake's stacks: name, place, tags, limits of roles, and the removal policy for data."""

from __future__ import annotations

from aws_cdk import DefaultStackSynthesizer, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_iam as iam
from constructs import Construct

from tributary.contract.aws import Aws
from tributary.contract.aws_names import AwsNames, StackKind
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake

LAKE_TAG = "tributary:lake"
"""The tag of every resource of a lake, with the lake's name."""


class TributaryStack(Stack):
    """A stack of the lake, in the region of `[aws]` and, if `[aws]` names one, its account."""

    def __init__(self, scope: Construct, kind: StackKind, lake: Lake, description: str) -> None:
        aws, names = deployment_of(lake), AwsNames(lake.name)
        super().__init__(
            scope,
            kind.title(),
            stack_name=names.stack(kind),
            description=f"Tributary, lake {lake.name}: {description}",
            env=Environment(account=aws.account, region=aws.region),
            termination_protection=aws.protected,
            synthesizer=DefaultStackSynthesizer(qualifier=aws.bootstrap.qualifier),
        )
        self.lake, self.aws, self.names = lake, aws, names
        for key, value in {**aws.tags, LAKE_TAG: lake.name}.items():
            Tags.of(self).add(key, value)
        limit_roles(self, aws)

    @property
    def of_data(self) -> RemovalPolicy:
        """The removal policy of a resource whose data cannot be recreated.

        A rollback still removes what a failed deployment has just created. Otherwise the next attempt would
        meet a resource of the same name.
        """
        if self.aws.deletes_data:
            return RemovalPolicy.DESTROY
        return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def limit_roles(stack: Stack, aws: Aws) -> None:
    """Give every role of a stack the permissions boundary of `[aws]`, if it names one."""
    if aws.permissions_boundary is not None:
        boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "Boundary", aws.permissions_boundary)
        iam.PermissionsBoundary.of(stack).apply(boundary)


def deployment_of(lake: Lake) -> Aws:
    """Return the lake's `[aws]`. Raise TributaryError if the lake file has none."""
    if lake.aws is None:
        raise TributaryError(
            "the lake file does not say where on AWS to deploy the lake",
            where=f"lake {lake.name}",
            expected='a section [aws], at least with region = "…"',
        )
    return lake.aws
