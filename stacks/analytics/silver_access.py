"""The permissions to query the silver tables with Athena, in one workgroup."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from stacks.lake.stack import LakeStack
from stacks.processing.spark_access import bucket_arn, objects_finding

CATALOG_READS = (
    "glue:BatchGetPartition",
    "glue:GetDatabase",
    "glue:GetPartition",
    "glue:GetPartitions",
    "glue:GetTable",
    "glue:GetTables",
)


def querying_silver(stack: LakeStack, workgroup: str) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions. Writing the results is not among them."""
    place = f"{stack.aws.region}:{Aws.ACCOUNT_ID}"
    catalog, database = f"arn:{Aws.PARTITION}:glue:{place}", stack.silver_database
    bucket = bucket_arn(stack, "silver")
    yield iam.PolicyStatement(
        actions=[
            "athena:GetQueryExecution",
            "athena:GetQueryResults",
            "athena:GetWorkGroup",
            "athena:StartQueryExecution",
            "athena:StopQueryExecution",
        ],
        resources=[f"arn:{Aws.PARTITION}:athena:{place}:workgroup/{workgroup}"],
    )
    yield iam.PolicyStatement(
        actions=list(CATALOG_READS),
        resources=[f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/*"],
    )
    yield iam.PolicyStatement(actions=["s3:GetBucketLocation", "s3:ListBucket"], resources=[bucket])
    yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/*"])


def findings_of_silver(stack: LakeStack, reason: str) -> dict[str, str]:
    """Return the reason by the findings that the permissions cause."""
    place = f"arn:<AWS::Partition>:glue:{stack.aws.region}:<AWS::AccountId>"
    return {
        f"AwsSolutions-IAM5[Resource::{place}:table/{stack.silver_database}/*]": reason,
        objects_finding(stack, "silver", "*"): reason,
    }
