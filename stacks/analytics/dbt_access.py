"""The permissions of a dbt run: read silver, and own one Glue database and its files. Nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from stacks.analytics.silver_access import CATALOG_READS, findings_of_silver, querying_silver
from stacks.kafka.access import Access
from stacks.lake.athena import RESULTS
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.stack import LakeStack
from stacks.processing.spark_access import bucket_arn, objects_finding

TABLES = "dbt/tables/"
"""The folder of the tables' files in the bucket for artifacts. Nothing there expires."""
DBT_RESULTS = f"{RESULTS}dbt/"
"""The folder of the queries' results, where they expire like all others."""


def dbt_access(lake_stack: LakeStack, workgroup: str) -> Access:
    """Return the permissions of a run, in which Athena acts for the run's role."""
    statements = (
        *querying_silver(lake_stack, workgroup),
        *_in_catalog(lake_stack),
        *_in_s3(lake_stack),
        *use_of_key(lake_stack.key, lake_stack.aws.region),
    )
    place = f"arn:<AWS::Partition>:glue:{lake_stack.aws.region}:<AWS::AccountId>"
    own = lake_stack.lake.names.dbt_database
    finding = "AwsSolutions-IAM5[Resource::{}]"
    return Access(
        statements,
        {
            finding.format(f"{place}:database/*"): _LISTS_DATABASES,
            finding.format(f"{place}:table/{own}/*"): _OWNS_ALL,
            **findings_of_silver(lake_stack, _READS_ALL),
            objects_finding(lake_stack, "artifacts", f"{TABLES}*"): _OWNS_ALL,
            objects_finding(lake_stack, "artifacts", f"{DBT_RESULTS}*"): _NAMED_BY_ATHENA,
        },
    )


def _in_catalog(stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    """Yield what dbt-athena calls in Glue, and what Athena calls for its statements."""
    place = f"arn:{Aws.PARTITION}:glue:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    own = stack.lake.names.dbt_database
    # dbt asks whether its database is there by listing all of them, and Glue answers only if it may.
    yield iam.PolicyStatement(
        actions=["glue:GetDatabases"], resources=[f"{place}:catalog", f"{place}:database/*"]
    )
    yield iam.PolicyStatement(
        actions=[
            *CATALOG_READS,
            "glue:BatchCreatePartition",
            "glue:BatchDeletePartition",
            "glue:BatchDeleteTable",
            "glue:CreatePartition",
            "glue:CreateTable",
            "glue:DeletePartition",
            "glue:DeleteTable",
            "glue:DeleteTableVersion",
            "glue:GetTableVersions",
            "glue:UpdatePartition",
            "glue:UpdateTable",
        ],
        resources=[f"{place}:catalog", f"{place}:database/{own}", f"{place}:table/{own}/*"],
    )


def _in_s3(stack: LakeStack) -> Iterator[iam.PolicyStatement]:
    artifacts = bucket_arn(stack, "artifacts")
    yield from writing(artifacts, f"{artifacts}/{TABLES}*", f"{artifacts}/{DBT_RESULTS}*")


_LISTS_DATABASES = (
    "dbt-athena lists the databases of the catalog to see whether its own is there. It gets their names and "
    "descriptions, and none of their tables."
)
_READS_ALL = "The project chooses which of the lake's tables its models read. It can only read them."
_OWNS_ALL = "The project names its tables, and dbt their files. Nothing else is in this database and folder."
_NAMED_BY_ATHENA = "Athena names the files of a query's result after the query. They expire after a week."
