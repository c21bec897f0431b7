"""The processing stack: EMR for the Spark app, the app's files and its permissions."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.database.stack import DatabaseStack
from stacks.kafka.stack import StreamingStack
from stacks.lake.lake_formation import grant_role, reading, writing_tables
from stacks.lake.stack import LakeStack
from stacks.log_groups import LakeLogGroup
from stacks.network import NetworkStack
from stacks.processing.emr_cluster import EmrCluster
from stacks.processing.emr_serverless import EmrServerless
from stacks.processing.notebook_access import notebook_access
from stacks.processing.restart import FollowRestart
from stacks.processing.spark_access import item_access, job_access
from stacks.processing.spark_package import LakeFiles, SparkFiles, SparkPackage
from stacks.processing.studio import LakeStudio
from tributary.contract.lake import Lake


class ProcessingStack(TributaryStack):
    """An EMR cluster or an EMR Serverless application, depending on `[aws.processing].on`.

    database        None: the lake has none of its own
    streaming       None: the lake has no Kafka
    built           the folder with the output of `tributary package`
    application_id  of EMR Serverless, None for a cluster

    The stack starts no runs of the app. `tributary submit` does, with the stack's outputs. Raises
    TributaryError if a file is not built.
    """

    def __init__(
        self,
        scope: Construct,
        lake: Lake,
        network: NetworkStack,
        lake_stack: LakeStack,
        database: DatabaseStack | None,
        streaming: StreamingStack | None,
        built: Path,
        lake_files: LakeFiles,
    ) -> None:
        super().__init__(scope, "processing", lake, "where the Spark app runs")
        self.application_id: str | None = None
        package = SparkPackage(self, "Package", SparkFiles.find(built, self.aws.processing), lake_files)
        metrics = LakeLogGroup(self, "Metrics", "metrics", network.log_key)
        kafka = None if streaming is None else streaming.kafka
        access = job_access(lake_stack, kafka, package, metrics)
        of_notebooks = notebook_access(lake_stack) if self.aws.processing.studio else None
        if self.aws.processing.on == "emr":
            emr = EmrCluster(self, "Emr", network, lake_stack.key, access, of_notebooks)
            role, place, notebook = emr.job_role, emr.cluster.ref, emr.notebook_role
            arn = f"arn:{Aws.PARTITION}:elasticmapreduce:{self.aws.region}:{Aws.ACCOUNT_ID}:cluster/{place}"
        else:
            serverless = EmrServerless(self, "Emr", network, access, of_notebooks)
            role, notebook, arn = serverless.role, serverless.notebook_role, serverless.arn
            self.application_id = place = serverless.application.attr_application_id
        if lake.item_sources:
            key = database.key if database is not None and database.streams else None
            of_items = item_access(lake_stack, key)
            policy = iam.ManagedPolicy(
                self,
                "ItemsPolicy",
                description=f"What the Spark app of lake {lake.name} may do with streams of items",
                statements=list(of_items),
                roles=[role],
            )
            acknowledge(policy, of_items.acknowledged)
        if notebook is not None:
            LakeStudio(self, "Studio", network, lake_stack.key, arn, notebook)
            grant_role(self, "Notebook", notebook.role_arn, [reading(lake_stack.silver_database)])
        if self.aws.processing.restarts:
            FollowRestart(self, "Restart", place, role, network.log_key)
        on_bronze = writing_tables if lake.item_sources or lake.bronze.is_changed else reading
        catalog = [on_bronze(lake_stack.bronze_database), writing_tables(lake_stack.silver_database)]
        grant_role(self, "Job", role.role_arn, catalog)
