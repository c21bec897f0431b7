"""The Spark app's permissions on AWS, wherever it runs: on buckets, catalog databases, Kafka and logs."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs

from stacks.base import TributaryStack
from stacks.kafka.access import Access, spark_access
from stacks.kafka.cluster import KafkaCluster
from stacks.lake.bucket import bucket_name
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.schema_registry import reading_findings, schema_reading
from stacks.lake.stack import LakeStack
from stacks.processing.spark_package import SparkPackage
from tributary.contract.aws_names import BucketKind


def job_access(
    lake_stack: LakeStack, kafka: KafkaCluster, package: SparkPackage, metrics: logs.ILogGroup
) -> Access:
    """Return all permissions of a run of the app."""
    in_kafka = spark_access(kafka, lake_stack.lake)
    statements = (
        *package.read_access(),
        *(_writing(lake_stack, "bronze") if _maintains(lake_stack) else _reading(lake_stack, "bronze")),
        *_writing(lake_stack, "silver"),
        *_writing(lake_stack, "quarantine"),
        *_catalog_access(lake_stack),
        *schema_reading(lake_stack),
        *in_kafka.statements,
        *use_of_key(lake_stack.key, lake_stack.aws.region),
        # The group's ARN ends in `:*`, which covers its streams.
        iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[metrics.log_group_arn]
        ),
    )
    buckets: tuple[BucketKind, ...] = ("bronze", "silver", "quarantine")
    return Access(
        statements,
        {
            **in_kafka.acknowledged,
            **reading_findings(lake_stack),
            **{objects_finding(lake_stack, kind, "*"): _OWN_BUCKET for kind in buckets},
            _tables_finding(
                lake_stack
            ): "New tables of the sources become new tables here. The database belongs to the app.",
        },
    )


def bucket_arn(stack: TributaryStack, kind: BucketKind) -> str:
    """Return a bucket's ARN, built from its name so that no stack has to export it."""
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(stack, kind)}"


def objects_finding(stack: TributaryStack, kind: BucketKind, objects: str) -> str:
    """Return the id of the finding that a statement on these objects of the bucket causes."""
    name = stack.names.bucket(kind, "<AWS::AccountId>", stack.aws.region)
    return f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{name}/{objects}]"


_OWN_BUCKET = "Hudi and Iceberg choose the names of their files. The bucket holds only this lake's files."


def _reading(stack: TributaryStack, kind: BucketKind) -> Iterator[iam.PolicyStatement]:
    bucket = bucket_arn(stack, kind)
    yield iam.PolicyStatement(actions=["s3:GetBucketLocation", "s3:ListBucket"], resources=[bucket])
    yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/*"])


def _writing(stack: TributaryStack, kind: BucketKind) -> list[iam.PolicyStatement]:
    bucket = bucket_arn(stack, kind)
    return writing(bucket, f"{bucket}/*")


def _catalog_access(lake_stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions to update the silver tables' entries (`spark_app.catalog`) and read bronze's."""
    yield iam.PolicyStatement(
        actions=[
            "glue:BatchCreatePartition",
            "glue:BatchDeletePartition",
            "glue:BatchUpdatePartition",
            "glue:CreateTable",
            "glue:GetDatabase",
            "glue:GetPartitions",
            "glue:GetTable",
            "glue:UpdateTable",
        ],
        resources=_in_catalog(lake_stack, lake_stack.silver_database, "*"),
    )
    bronze_table = lake_stack.lake.names.bronze_table.rsplit(".", 1)[1]
    yield iam.PolicyStatement(
        actions=[
            "glue:GetDatabase",
            "glue:GetTable",
            *(["glue:UpdateTable"] if _maintains(lake_stack) else []),
        ],
        resources=_in_catalog(lake_stack, lake_stack.bronze_database, bronze_table),
    )


def _maintains(lake_stack: LakeStack) -> bool:
    """Tell whether the app may change bronze (`tributary submit maintain`)."""
    return lake_stack.lake.bronze.retention is not None


def _in_catalog(stack: TributaryStack, database: str, table: str) -> list[str]:
    """Return a table's ARN with its catalog's and database's. Glue requires permission on all three."""
    catalog = f"arn:{Aws.PARTITION}:glue:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    return [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{table}"]


def _tables_finding(stack: LakeStack) -> str:
    place = f"arn:<AWS::Partition>:glue:{stack.aws.region}:<AWS::AccountId>"
    return f"AwsSolutions-IAM5[Resource::{place}:table/{stack.silver_database}/*]"
