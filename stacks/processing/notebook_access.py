"""What a person's notebook may do: read the silver tables. Only the Spark app changes them."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from stacks.kafka.access import Access
from stacks.lake.bucket_access import use_of_key
from stacks.lake.stack import LakeStack
from stacks.processing.spark_access import bucket_arn, objects_finding


def notebook_access(lake_stack: LakeStack) -> Access:
    """Return the permissions of a notebook's Spark session. It cannot write to any bucket or catalog."""
    bucket, database = bucket_arn(lake_stack, "silver"), lake_stack.silver_database
    catalog = f"arn:{Aws.PARTITION}:glue:{lake_stack.aws.region}:{Aws.ACCOUNT_ID}"
    statements = (
        iam.PolicyStatement(actions=["s3:GetBucketLocation", "s3:ListBucket"], resources=[bucket]),
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/*"]),
        iam.PolicyStatement(
            actions=[
                "glue:GetDatabase",
                "glue:GetPartition",
                "glue:GetPartitions",
                "glue:GetTable",
                "glue:GetTables",
                "glue:GetUserDefinedFunctions",
            ],
            resources=[
                f"{catalog}:catalog",
                # Spark looks for the database `default` when a session starts.
                f"{catalog}:database/default",
                f"{catalog}:database/{database}",
                f"{catalog}:table/{database}/*",
                f"{catalog}:userDefinedFunction/{database}/*",
            ],
        ),
        *use_of_key(lake_stack.key, lake_stack.aws.region),
    )
    place = f"arn:<AWS::Partition>:glue:{lake_stack.aws.region}:<AWS::AccountId>"
    return Access(
        statements,
        {
            objects_finding(lake_stack, "silver", "*"): _READS_ALL,
            **{
                f"AwsSolutions-IAM5[Resource::{place}:{kind}/{database}/*]": _READS_ALL
                for kind in ("table", "userDefinedFunction")
            },
        },
    )


_READS_ALL = "A person asks about any of the lake's tables. The notebook can only read them."
