"""The permissions of a verification: read the lake and its sources, and write its own records.

docs/operate-aws.md lists the same for a person who runs the commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager

from stacks.base import TributaryStack
from stacks.database.secrets import read_access
from stacks.kafka.access import Access
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.schema_registry import reading_findings, schema_reading
from stacks.lake.stack import LakeStack
from stacks.processing.spark_access import bucket_arn, objects_finding
from tributary.contract.aws_names import METRICS_NAMESPACE, StackKind

_STACKS: Sequence[StackKind] = ("lake", "streaming")
"""The stacks whose outputs a run reads."""


def job_access(
    stack: TributaryStack, lake_stack: LakeStack, secrets: Sequence[secretsmanager.ISecret]
) -> Access:
    """Return the permissions of a run, except those in Kafka.

    secrets  of the databases' passwords and the salt of hashes
    """
    silver, quarantine = bucket_arn(stack, "silver"), bucket_arn(stack, "quarantine")
    statements = (
        iam.PolicyStatement(
            actions=["cloudformation:DescribeStacks"], resources=[_stack_arn(stack, kind) for kind in _STACKS]
        ),
        # MSK Connect has no permission to list some connectors only.
        iam.PolicyStatement(actions=["kafkaconnect:ListConnectors"], resources=["*"]),
        iam.PolicyStatement(
            actions=["kafkaconnect:DescribeConnector"],
            resources=[f"{_connectors(stack)}/{name}/*" for name in _sources(stack)],
        ),
        *(right for secret in secrets for right in read_access(secret, stack.aws.region)),
        iam.PolicyStatement(actions=["s3:GetBucketLocation", "s3:ListBucket"], resources=[silver]),
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{silver}/*"]),
        *writing(quarantine, f"{quarantine}/*"),
        *use_of_key(lake_stack.key, stack.aws.region),
        *schema_reading(stack),
        *_of_metrics(),
    )
    return Access(
        statements,
        {
            **reading_findings(stack),
            **_findings_of_names(stack),
            objects_finding(stack, "silver", "*"): _READS_ALL,
            objects_finding(stack, "quarantine", "*"): _BY_TABLE,
            "AwsSolutions-IAM5[Resource::*]": _NO_NARROWER,
        },
    )


def _of_metrics() -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        actions=["cloudwatch:PutMetricData"],
        resources=["*"],
        conditions={"StringEquals": {"cloudwatch:namespace": METRICS_NAMESPACE}},
    )


def _findings_of_names(stack: TributaryStack) -> Mapping[str, str]:
    rendered = {Aws.PARTITION: "<AWS::Partition>", Aws.ACCOUNT_ID: "<AWS::AccountId>"}
    arns = [_stack_arn(stack, kind) for kind in _STACKS]
    arns += [f"{_connectors(stack)}/{name}/*" for name in _sources(stack)]
    findings = {}
    for arn in arns:
        for token, text in rendered.items():
            arn = arn.replace(token, text)
        findings[f"AwsSolutions-IAM5[Resource::{arn}]"] = _BY_AWS
    return findings


def _stack_arn(stack: TributaryStack, kind: StackKind) -> str:
    place = f"arn:{Aws.PARTITION}:cloudformation:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    return f"{place}:stack/{stack.names.stack(kind)}/*"


def _connectors(stack: TributaryStack) -> str:
    return f"arn:{Aws.PARTITION}:kafkaconnect:{stack.aws.region}:{Aws.ACCOUNT_ID}:connector"


def _sources(stack: TributaryStack) -> list[str]:
    lake = stack.lake
    return [lake.source_names(source).connector for source in lake.connected_sources]


_READS_ALL = "A verification compares all tables of the lake. It can only read them."
_BY_TABLE = (
    "The records of a verification are in a folder for each table, and new tables come without a deployment."
)
_BY_AWS = "AWS appends an id of its choice to this name."
_NO_NARROWER = (
    "AWS has no narrower permission for these requests: a list of connectors, and a schema by its id. "
    "Metrics are limited to the namespace of Tributary."
)
