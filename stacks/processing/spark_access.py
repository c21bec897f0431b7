"""The Spark app's permissions on AWS, wherever it runs: on buckets, catalog databases, Kafka and logs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs

from stacks.base import TributaryStack
from stacks.kafka.access import Access, spark_access
from stacks.kafka.cluster import KafkaCluster
from stacks.lake.bucket import bucket_name
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.schema_registry import (
    reading_findings,
    schema_reading,
    schema_writing,
    writing_findings,
)
from stacks.lake.stack import LakeStack
from stacks.processing.spark_package import SparkPackage
from tributary.contract.aws_names import BucketKind
from tributary.contract.item_stream import ItemStream
from tributary.contract.patterns import WILDCARDS
from tributary.contract.source import Source


def job_access(
    lake_stack: LakeStack, kafka: KafkaCluster | None, package: SparkPackage, metrics: logs.ILogGroup
) -> Access:
    """Return the permissions of a run of the app, except `item_access`. `kafka` is None if there is none."""
    in_kafka = Access((), {}) if kafka is None else spark_access(kafka, lake_stack.lake)
    statements = (
        *package.read_access(),
        *_on_bronze(lake_stack),
        *_writing(lake_stack, "silver"),
        *_writing(lake_stack, "quarantine"),
        *_on_folders(lake_stack),
        *_catalog_access(lake_stack),
        *(schema_writing if _adds_schemas(lake_stack) else schema_reading)(lake_stack),
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
            **(writing_findings if _adds_schemas(lake_stack) else reading_findings)(lake_stack),
            **{objects_finding(lake_stack, kind, "*"): _OWN_BUCKET for kind in buckets},
            **{
                f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{folder}/*]": _OWN_FOLDER
                for folder in _folders(lake_stack)
            },
            _tables_finding(
                lake_stack
            ): "New tables of the sources become new tables here. The database belongs to the app.",
        },
    )


def item_access(lake_stack: LakeStack, key: kms.IKey | None) -> Access:
    """Return the permissions to read streams and tables of items.

    IAM limits the length of a policy, so these are for a policy of their own. `key` is the lake's own, which
    encrypts its streams and tables, or None.
    """
    statements = (*_item_access(lake_stack), *_use_of_streams_key(key, lake_stack.aws.region))
    return Access(statements, _item_findings(lake_stack))


def bucket_arn(stack: TributaryStack, kind: BucketKind) -> str:
    """Return a bucket's ARN, built from its name so that no stack has to export it."""
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(stack, kind)}"


def objects_finding(stack: TributaryStack, kind: BucketKind, objects: str) -> str:
    """Return the id of the finding that a statement on these objects of the bucket causes."""
    name = stack.names.bucket(kind, "<AWS::AccountId>", stack.aws.region)
    return f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{name}/{objects}]"


_OWN_BUCKET = "Hudi and Iceberg choose the names of their files. The bucket holds only this lake's files."


_OWN_FOLDER = "Spark chooses the names of the files. A derived table of the lake file has this folder."


def _folders(stack: LakeStack) -> list[str]:
    """Return the folders in S3 that derived tables write, as bucket/path."""
    folders = {table.folder for _, table in stack.lake.derived if table.folder is not None}
    return sorted(
        folder.removeprefix("s3://").rstrip("/") for folder in folders if folder.startswith("s3://")
    )


def _on_folders(stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions on the folders of derived tables."""
    for folder in _folders(stack):
        bucket = folder.partition("/")[0]
        yield from writing(f"arn:{Aws.PARTITION}:s3:::{bucket}", f"arn:{Aws.PARTITION}:s3:::{folder}/*")


def _adds_schemas(stack: LakeStack) -> bool:
    """Return whether the app gives the registry schemas: those of derived tables' messages."""
    return any(table.writes_avro for _, table in stack.lake.derived)


def _on_bronze(stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions on bronze, to which the app itself writes the records of streams of items."""
    writes = bool(stack.lake.item_sources) or _changes_bronze(stack)
    yield from _writing(stack, "bronze") if writes else _reading(stack, "bronze")


def _item_access(stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions to read the streams of items, and to keep the tables of their records."""
    streams = [source.item_stream for source in stack.lake.item_sources]
    yield iam.PolicyStatement(
        actions=[
            "kinesis:DescribeStreamSummary",
            "kinesis:GetRecords",
            "kinesis:GetShardIterator",
            "kinesis:ListShards",
        ],
        resources=sorted({stream_arn(stack, stream) for stream in streams if stream is not None}),
    )
    loaded = [source for source in stack.lake.item_sources if _is_loaded(source)]
    if loaded:
        tables = sorted({arn for source in loaded for arn in _table_arns(stack, source)})
        yield iam.PolicyStatement(actions=["dynamodb:DescribeTable", "dynamodb:Scan"], resources=tables)
    if folders := _export_folders(stack):
        objects = [f"arn:{Aws.PARTITION}:s3:::{folder}/*" for folder in folders]
        yield iam.PolicyStatement(actions=["s3:GetObject"], resources=objects)
    if any(_is_found(source) for source in loaded):
        # DynamoDB has no permission to list some tables only.
        yield iam.PolicyStatement(actions=["dynamodb:ListTables"], resources=["*"])
    records = [
        stack.lake.names.spark_records_table(source.name).rpartition(".")[2]
        for source in stack.lake.item_sources
    ]
    resources = (_in_catalog(stack, stack.bronze_database, table) for table in records)
    yield iam.PolicyStatement(
        actions=["glue:CreateTable", "glue:GetDatabase", "glue:GetTable", "glue:UpdateTable"],
        resources=sorted({resource for of_table in resources for resource in of_table}),
    )


def _use_of_streams_key(key: kms.IKey | None, region: str) -> list[iam.PolicyStatement]:
    """Return the permission to read encrypted records and items, through the services that hold them."""
    if key is None:
        return []
    services = [f"{service}.{region}.amazonaws.com" for service in ("dynamodb", "kinesis")]
    return [
        iam.PolicyStatement(
            actions=["kms:Decrypt"],
            resources=[key.key_arn],
            conditions={"StringEquals": {"kms:ViaService": services}},
        )
    ]


def _export_folders(stack: TributaryStack) -> list[str]:
    """Return the folders of exports that items are read from, as bucket/path."""
    streams = [source.item_stream for source in stack.lake.item_sources]
    found = {address for stream in streams if stream is not None for _, address in stream.exports}
    return sorted(address.removeprefix("s3://").rstrip("/") for address in found)


def _is_loaded(source: Source) -> bool:
    """Return whether the app reads all items of the source's new tables."""
    return source.item_stream is not None and source.item_stream.initial_load


def _is_found(source: Source) -> bool:
    """Return whether the app has to list tables to find the source's tables."""
    return any(wildcard in pattern.table for pattern in source.patterns.include for wildcard in WILDCARDS)


def _table_arns(stack: TributaryStack, source: Source) -> Iterator[str]:
    """Yield the ARNs of the source's tables. IAM has the same wildcards as a lake file."""
    stream = source.item_stream
    region = (None if stream is None else stream.region_of_stream) or stack.aws.region
    for pattern in source.patterns.include:
        yield f"arn:{Aws.PARTITION}:dynamodb:{region}:{Aws.ACCOUNT_ID}:table/{pattern.table}"


def _item_findings(stack: TributaryStack) -> dict[str, str]:
    loaded = [source for source in stack.lake.item_sources if _is_loaded(source)]
    found = {
        f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{folder}/*]": _OF_EXPORT
        for folder in _export_folders(stack)
    }
    for source in loaded:
        for arn in _table_arns(stack, source):
            if any(wildcard in arn.rpartition("/")[2] for wildcard in WILDCARDS):
                tokens = {Aws.PARTITION: "<AWS::Partition>", Aws.ACCOUNT_ID: "<AWS::AccountId>"}
                named = reduce(lambda text, token: text.replace(*token), tokens.items(), arn)
                found[f"AwsSolutions-IAM5[Resource::{named}]"] = _BY_PATTERN
    if any(_is_found(source) for source in loaded):
        found["AwsSolutions-IAM5[Resource::*]"] = "DynamoDB has no permission to list some tables only."
    return found


_OF_EXPORT = "DynamoDB chooses the names of an export's files. The lake file names the export's own folder."
_BY_PATTERN = "The lake file takes tables by a pattern, so that new ones are taken, too."


def stream_arn(stack: TributaryStack, stream: ItemStream) -> str:
    """Return the ARN of a stream, which is in the lake's account and region if only its name is known."""
    region = stream.region or stack.aws.region
    return stream.arn or f"arn:{Aws.PARTITION}:kinesis:{region}:{Aws.ACCOUNT_ID}:stream/{stream.name}"


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
            *(["glue:UpdateTable"] if _changes_bronze(lake_stack) else []),
        ],
        resources=_in_catalog(lake_stack, lake_stack.bronze_database, bronze_table),
    )


def _changes_bronze(lake_stack: LakeStack) -> bool:
    """Tell whether the app may change bronze (`tributary submit maintain`, `tributary erase --aws`)."""
    return lake_stack.lake.bronze.is_changed


def _in_catalog(stack: TributaryStack, database: str, table: str) -> list[str]:
    """Return a table's ARN with its catalog's and database's. Glue requires permission on all three."""
    catalog = f"arn:{Aws.PARTITION}:glue:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    return [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{table}"]


def _tables_finding(stack: LakeStack) -> str:
    place = f"arn:<AWS::Partition>:glue:{stack.aws.region}:<AWS::AccountId>"
    return f"AwsSolutions-IAM5[Resource::{place}:table/{stack.silver_database}/*]"
