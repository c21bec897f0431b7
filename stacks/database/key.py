"""The key that the lake's databases are encrypted with where the lake has keys of its own."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from stacks.base import TributaryStack


class DatabaseKey(kms.Key):
    """The key of all databases of the lake, of their secrets and of their logs."""

    def __init__(self, stack: TributaryStack, construct_id: str) -> None:
        super().__init__(
            stack,
            construct_id,
            description=f"Databases of lake {stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=stack.of_data,
        )
        groups = (
            f"arn:{Aws.PARTITION}:logs:{stack.aws.region}:{Aws.ACCOUNT_ID}:log-group:"
            f"/aws/rds/cluster/{stack.names.resource}-*"
        )
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{stack.aws.region}.amazonaws.com")],
                actions=["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"],
                resources=["*"],  # In a key's policy: this key.
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )
