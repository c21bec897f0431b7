"""The lake's log groups: their names, retention and encryption key."""

from __future__ import annotations

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip


class LogKey(kms.Key):
    """The key of the lake's log groups. CloudWatch Logs may use it only for these groups."""

    def __init__(self, stack: TributaryStack, construct_id: str) -> None:
        super().__init__(
            stack,
            construct_id,
            description=f"Log groups of lake {stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=stack.of_data,
        )
        groups = f"arn:{Aws.PARTITION}:logs:{stack.aws.region}:{Aws.ACCOUNT_ID}:log-group:"
        self.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{stack.aws.region}.amazonaws.com")],
                actions=["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"],
                resources=["*"],  # In a key's policy, `*` means this key.
                conditions={
                    "ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups + stack.names.log_group("*")}
                },
            )
        )


class LakeLogGroup(logs.LogGroup):
    """The log group `/tributary/<lake>/<of>`. Logs are not data, so the group is deleted with its stack.

    key  the network stack's `log_key`, None if `[aws.storage].encryption` is "s3"
    """

    def __init__(self, scope: Construct, construct_id: str, of: str, key: kms.IKey | None) -> None:
        stack = TributaryStack.of(scope)
        assert isinstance(stack, TributaryStack)
        super().__init__(
            scope,
            construct_id,
            log_group_name=stack.names.log_group(of),
            retention=_RETENTION[stack.aws.storage.logs_kept.days],
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=key,
        )
        if key is None:
            packs = ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")
            acknowledge(self, {f"{pack}-CloudWatchLogGroupEncrypted": _SERVICE_KEY for pack in packs})
            skip(self, {"CKV_AWS_158": _SERVICE_KEY})


_SERVICE_KEY = (
    'CloudWatch Logs encrypts the group with its own key, because [aws.storage].encryption is "s3". With '
    '"kms", a key of the account encrypts it.'
)

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
}
"""The CDK's retention by the days of `tributary.contract.aws.LOG_DAYS`."""
