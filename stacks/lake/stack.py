"""The lake stack: buckets, catalog databases and Athena's workgroup."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import skip_in_functions_of_the_cdk
from stacks.lake.athena import LakeWorkgroup
from stacks.lake.bucket import LakeBucket, LogBucket
from stacks.lake.demo_queries import demo_queries
from stacks.lake.lake_formation import grant_readers
from stacks.lake.schema_registry import LakeSchemaRegistry
from tributary.contract.aws_names import Output
from tributary.contract.erasure import DAYS_OF_LEFTOVERS, ERASURES_FOLDER
from tributary.contract.lake import Lake


class LakeStack(TributaryStack):
    """The lake stack.

    bronze, silver, quarantine, artifacts, logs  the buckets
    key  encrypts all buckets except logs. None if `[aws.storage].encryption` is "s3".
    bronze_database, silver_database  names in the Glue Data Catalog
    workgroup  the name of Athena's workgroup
    """

    def __init__(self, scope: Construct, lake: Lake) -> None:
        super().__init__(scope, "lake", lake, "buckets, catalog and Athena workgroup")
        self.key: kms.IKey | None = self._key() if self.aws.storage.encryption == "kms" else None
        self.logs: s3.IBucket = LogBucket(self)
        self.bronze: s3.IBucket = LakeBucket(
            self, "bronze", logs=self.logs, key=self.key, rules=[self._to_colder_storage()]
        )
        self.silver: s3.IBucket = LakeBucket(self, "silver", logs=self.logs, key=self.key)
        self.quarantine: s3.IBucket = LakeBucket(
            self, "quarantine", logs=self.logs, key=self.key, rules=[self._no_leftover_keys()]
        )
        self.artifacts: s3.IBucket = LakeBucket(
            self, "artifacts", logs=self.logs, key=self.key, rules=[LakeWorkgroup.RESULTS_EXPIRE]
        )

        names = lake.names
        self.bronze_database, self.silver_database = names.bronze_namespace, names.glue_database
        self._database("BronzeDatabase", self.bronze_database, "every event, as it came", self.bronze)
        silver = self._database("SilverDatabase", self.silver_database, "the tables, current", self.silver)
        LakeSchemaRegistry(self, "Schemas")
        workgroup = LakeWorkgroup(self, "Workgroup", self.artifacts, self.key)
        self.workgroup = workgroup.name
        for query in demo_queries(lake):
            workgroup.add_query(query, silver)
        grant_readers(self, silver, self.silver_database)

        for output, value in {
            Output.BRONZE: f"s3://{self.bronze.bucket_name}",
            Output.SILVER: f"s3://{self.silver.bucket_name}",
            Output.QUARANTINE: f"s3://{self.quarantine.bucket_name}",
            Output.LOGS: f"s3://{self.logs.bucket_name}",
            Output.GLUE_DATABASE: self.silver_database,
            Output.ATHENA_WORKGROUP: self.workgroup,
        }.items():
            CfnOutput(self, output, value=value)
        skip_in_functions_of_the_cdk(self)

    def _key(self) -> kms.Key:
        return kms.Key(
            self,
            "Key",
            description=f"Data of lake {self.lake.name}",
            enable_key_rotation=True,
            removal_policy=self.of_data,
        )

    def _to_colder_storage(self) -> s3.LifecycleRule:
        """Move bronze to storage that is instantly readable but charges for reads. Only rebuilds read it."""
        return s3.LifecycleRule(
            id="ToColderStorage",
            transitions=[
                s3.Transition(
                    storage_class=s3.StorageClass.GLACIER_INSTANT_RETRIEVAL,
                    transition_after=Duration.days(self.aws.storage.bronze_cold_after.days),
                )
            ],
        )

    def _no_leftover_keys(self) -> s3.LifecycleRule:
        """Remove the keys and reports of `tributary erase --aws` that it could not remove itself."""
        soon = Duration.days(DAYS_OF_LEFTOVERS)
        return s3.LifecycleRule(
            id="NoLeftoverKeys",
            prefix=f"{ERASURES_FOLDER}/",
            expiration=soon,
            noncurrent_version_expiration=soon,
        )

    def _database(self, construct_id: str, name: str, holds: str, bucket: s3.IBucket) -> glue.CfnDatabase:
        database = glue.CfnDatabase(
            self,
            construct_id,
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=name,
                description=f"Lake {self.lake.name}: {holds}",
                location_uri=f"s3://{bucket.bucket_name}",
            ),
        )
        # An Iceberg table's catalog entry is the only pointer to its current state.
        database.apply_removal_policy(self.of_data)
        return database
