"""Athena's workgroup: the limit of a query's cost, and where and how long results are kept."""

from __future__ import annotations

from aws_cdk import Aws, Duration
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.base import TributaryStack
from stacks.lake.demo_queries import DemoQuery

RESULTS = "athena-results/"
"""The folder of the results, in the bucket for artifacts. They expire."""


class LakeWorkgroup(Construct):
    """The lake's workgroup. Users cannot override its settings."""

    RESULTS_EXPIRE = s3.LifecycleRule(id="ExpireResults", prefix=RESULTS, expiration=Duration.days(7))
    """The lifecycle rule for the bucket of the results."""

    def __init__(
        self, scope: Construct, construct_id: str, results: s3.IBucket, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        self.name = stack.names.resource
        encryption = (
            athena.CfnWorkGroup.EncryptionConfigurationProperty(encryption_option="SSE_S3")
            if key is None
            else athena.CfnWorkGroup.EncryptionConfigurationProperty(
                encryption_option="SSE_KMS", kms_key=key.key_arn
            )
        )
        self._workgroup = athena.CfnWorkGroup(
            self,
            "Resource",
            name=self.name,
            description=f"Queries of lake {stack.lake.name}",
            # Otherwise saved queries would prevent the workgroup's deletion.
            recursive_delete_option=stack.aws.deletes_data,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=stack.aws.storage.scan_limit_gb * 10**9,
                engine_version=athena.CfnWorkGroup.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
                result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                    output_location=f"s3://{results.bucket_name}/{RESULTS}",
                    expected_bucket_owner=Aws.ACCOUNT_ID,
                    encryption_configuration=encryption,
                ),
            ),
        )

    def add_query(self, query: DemoQuery, database: glue.CfnDatabase) -> None:
        """Save a query on `database` for the workgroup's users."""
        saved = athena.CfnNamedQuery(
            self,
            query.id,
            name=query.title,
            query_string=query.sql,
            database=database.ref,
            work_group=self.name,
        )
        saved.add_resource_dependency(self._workgroup)
