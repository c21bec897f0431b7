"""A scheduled dbt project: EventBridge Scheduler starts AWS CodeBuild, which runs dbt on Athena.

A run installs dbt-athena, so it needs the package index on the internet, which CodeBuild reaches outside the
lake's VPC.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.analytics.dbt_access import DBT_RESULTS, TABLES, dbt_access
from stacks.analytics.dbt_project import PROJECT, REQUIREMENTS, has_packages, install_options, write_project
from stacks.base import TributaryStack
from stacks.checks.findings import skip
from stacks.lake.bucket import bucket_name
from stacks.lake.lake_formation import grant_role, owning_tables, reading
from stacks.lake.stack import LakeStack
from stacks.log_groups import LakeLogGroup
from stacks.scheduled_build import PYTHON, ScheduledJob, add_scheduled_job
from tributary.contract.aws_analytics import DbtJob
from tributary.contract.aws_names import Output


class DbtJobOnAws(Construct):
    """The job with its own Athena workgroup, Glue database, role, log group and schedule."""

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        job: DbtJob,
        folder: Path,
        lake_stack: LakeStack,
        log_key: kms.IKey | None,
    ) -> None:
        super().__init__(stack, construct_id)
        self._stack, self._job = stack, job
        name = f"{stack.names.resource}-dbt"
        bucket = bucket_name(stack, "artifacts")
        database = self._database(bucket)
        self._workgroup(name)
        project = folder / job.project
        with tempfile.TemporaryDirectory() as staged:
            write_project(project, Path(staged))
            asset = assets.Asset(self, "Project", path=staged)
        log = LakeLogGroup(self, "Logs", "dbt", log_key)
        role = add_scheduled_job(
            self,
            ScheduledJob(
                name=name,
                run="dbt run",
                does=f"Runs the dbt project {job.project} on lake {stack.lake.name}",
                phases=self._phases(project),
                schedule=job.schedule,
                time_zone=job.time_zone,
                time_limit=job.time_limit,
                source=asset,
                access=dbt_access(lake_stack, name),
                log=log,
                variables=self._variables(name, bucket),
            ),
        )
        for grant in grant_role(
            stack,
            "Dbt",
            role.role_arn,
            [reading(lake_stack.silver_database), owning_tables(stack.lake.names.dbt_database)],
        ):
            grant.add_resource_dependency(database)
        CfnOutput(stack, Output.DBT_PROJECT, value=name)

    def _database(self, bucket: str) -> glue.CfnDatabase:
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self._stack.lake.names.dbt_database,
                description=f"Lake {self._stack.lake.name}: what dbt builds from the tables",
                location_uri=f"s3://{bucket}/{TABLES}",
            ),
        )
        database.apply_removal_policy(self._stack.of_data)
        return database

    def _workgroup(self, name: str) -> None:
        """Add a workgroup whose users say where a statement writes. Results expire, and tables must not."""
        workgroup = athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=name,
            description=f"dbt on lake {self._stack.lake.name}",
            recursive_delete_option=self._stack.aws.deletes_data,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=False,
                publish_cloud_watch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=self._stack.aws.storage.scan_limit_gb * 10**9,
                engine_version=athena.CfnWorkGroup.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
            ),
        )
        skip(workgroup, {"CKV_AWS_82": _BY_THE_BUCKET})

    def _variables(self, workgroup: str, bucket: str) -> Mapping[str, str]:
        """Return what the project's profile and sources can read with `env_var`."""
        names = self._stack.lake.names
        return {
            "TRIBUTARY_ATHENA_WORKGROUP": workgroup,
            "TRIBUTARY_ATHENA_RESULTS": f"s3://{bucket}/{DBT_RESULTS}",
            "TRIBUTARY_ATHENA_TABLES": f"s3://{bucket}/{TABLES}",
            "TRIBUTARY_DBT_DATABASE": names.dbt_database,
            "TRIBUTARY_SILVER_DATABASE": names.glue_database,
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }

    def _phases(self, project: Path) -> Mapping[str, Any]:
        commands = ["deps", *self._job.commands] if has_packages(project) else self._job.commands
        install = f"pip install --quiet --disable-pip-version-check {install_options(project)}"
        options = f"--target {self._job.target} --profiles-dir ."
        return {
            "install": {
                "runtime-versions": {"python": PYTHON},
                "commands": [f"{install}-r {REQUIREMENTS}"],
            },
            "build": {
                "commands": [
                    f"cd {PROJECT}",
                    *(
                        f"dbt --no-use-colors {shlex.join(shlex.split(command))} {options}"
                        for command in commands
                    ),
                ]
            },
        }


_BY_THE_BUCKET = (
    "A workgroup that enforces a place for results would put the tables' files there too, and results "
    "expire. The bucket encrypts every object, whatever a statement says."
)
