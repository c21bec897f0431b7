"""The key that encrypts the lake's databases, if the lake has its own keys."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from stacks.base import TributaryStack


class DatabaseKey(kms.Key):
    """The key of all of the lake's databases, their secrets and their logs.

    servers  what RDS calls the databases' servers in the names of their log groups
    """

    def __init__(self, stack: TributaryStack, construct_id: str, servers: Iterable[str]) -> None:
        super().__init__(
            stack,
            construct_id,
            description=f"Databases of lake {stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=stack.of_data,
        )
        groups = [
            f"arn:{Aws.PARTITION}:logs:{stack.aws.region}:{Aws.ACCOUNT_ID}:log-group:"
            f"/aws/rds/{kind}/{stack.names.resource}-*"
            for kind in sorted({*servers})
        ]
        names = groups[0] if len(groups) == 1 else groups
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{stack.aws.region}.amazonaws.com")],
                actions=["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"],
                resources=["*"],  # In a key's policy, `*` means this key.
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": names}},
            )
        )
