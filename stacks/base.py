"""What all stacks of a lake have in common: name, place, tags, and what becomes of data that is destroyed."""

from __future__ import annotations

from aws_cdk import Environment, RemovalPolicy, Stack, Tags
from constructs import Construct

from tributary.contract.aws import Aws
from tributary.contract.aws_names import AwsNames, StackKind
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake


class TributaryStack(Stack):
    """A stack of the lake, in the region of `[aws]` and in its account where it names one."""

    def __init__(self, scope: Construct, kind: StackKind, lake: Lake, description: str) -> None:
        aws, names = deployment_of(lake), AwsNames(lake.name)
        super().__init__(
            scope,
            kind.title(),
            stack_name=names.stack(kind),
            description=f"Tributary, lake {lake.name}: {description}",
            env=Environment(account=aws.account, region=aws.region),
            termination_protection=not aws.deletes_data,
        )
        self.lake, self.aws, self.names = lake, aws, names
        Tags.of(self).add("tributary:lake", lake.name)

    @property
    def of_data(self) -> RemovalPolicy:
        """For what holds data that cannot be made again."""
        return RemovalPolicy.DESTROY if self.aws.deletes_data else RemovalPolicy.RETAIN


def deployment_of(lake: Lake) -> Aws:
    """The lake's `[aws]`. Raises TributaryError where the lake file has none."""
    if lake.aws is None:
        raise TributaryError(
            "the lake file does not say where on AWS the lake is to be built",
            where=f"lake {lake.name}",
            expected='a section [aws], at least with region = "…"',
        )
    return lake.aws
