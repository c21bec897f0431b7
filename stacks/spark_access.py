"""What the Spark app may do on AWS, wherever it runs: which actions on which buckets, databases and logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from contract.lake import Lake
from stacks.base import TributaryStack, deployment_of
from stacks.kafka_access import spark_access
from stacks.lake import LakeStack
from stacks.spark_package import SparkPackage

if TYPE_CHECKING:
    from stacks.kafka_cluster import KafkaCluster


def job_access(
    lake: Lake, lake_stack: LakeStack, kafka: KafkaCluster, package: SparkPackage, metrics: logs.ILogGroup
) -> list[iam.PolicyStatement]:
    """Every statement of the role that a run has."""
    return [
        *package.read_access(),
        *_reading(lake_stack.bronze),
        *_writing(lake_stack.silver),
        *_writing(lake_stack.quarantine),
        *_catalog_access(lake, lake_stack),
        *spark_access(kafka, lake),
        *key_access(lake_stack.key, f"s3.{deployment_of(lake).region}.amazonaws.com"),
        # The group's ARN ends in `:*`, which stands for its streams.
        iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[metrics.log_group_arn]
        ),
    ]


def key_access(key: kms.IKey | None, service: str) -> Iterator[iam.PolicyStatement]:
    """Using the key through a service, where there is one."""
    if key is not None:
        yield iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": service}},
        )


def _reading(bucket: s3.IBucket) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        actions=["s3:GetBucketLocation", "s3:ListBucket"], resources=[bucket.bucket_arn]
    )
    yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[bucket.arn_for_objects("*")])


def _writing(bucket: s3.IBucket) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
        resources=[bucket.bucket_arn],
    )
    yield iam.PolicyStatement(
        actions=[
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
            "s3:GetObject",
            "s3:ListMultipartUploadParts",
            "s3:PutObject",
        ],
        resources=[bucket.arn_for_objects("*")],
    )


def _catalog_access(lake: Lake, lake_stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Showing the silver tables (`spark_app.glue`), and finding bronze's one table."""
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
    bronze_table = lake.names.bronze_table.rsplit(".", 1)[1]
    yield iam.PolicyStatement(
        actions=["glue:GetDatabase", "glue:GetTable"],
        resources=_in_catalog(lake_stack, lake_stack.bronze_database, bronze_table),
    )


def _in_catalog(stack: TributaryStack, database: str, table: str) -> list[str]:
    """Glue asks for a right on the catalog and the database beside that on the table."""
    catalog = f"arn:{Aws.PARTITION}:glue:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    return [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{table}"]
