"""A scheduled dbt project: EventBridge Scheduler starts AWS CodeBuild, which runs dbt on Athena.

CodeBuild has no servers to keep and is paid by the minute. A run installs dbt-athena, so it needs the package
index on the internet, which CodeBuild reaches outside the lake's VPC.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Aws, CfnOutput, Stack
from aws_cdk import aws_athena as athena
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.analytics.dbt_access import DBT_RESULTS, TABLES, dbt_access
from stacks.analytics.dbt_project import PROJECT, REQUIREMENTS, has_packages, install_options, write_project
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.lake.bucket import bucket_name
from stacks.lake.lake_formation import grant_role, owning_tables, reading
from stacks.lake.stack import LakeStack
from stacks.log_groups import LakeLogGroup
from tributary.contract.aws_analytics import DbtJob
from tributary.contract.aws_names import Output

_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
_PYTHON = "3.11"
_COMPUTE = "BUILD_GENERAL1_SMALL"
"""2 vCPUs and 4 GB. Athena does the work; dbt only sends statements."""


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
        role = iam.Role(
            self,
            "Role",
            description=f"What a dbt run of lake {stack.lake.name} may do",
            assumed_by=iam.ServicePrincipal(
                "codebuild.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )
        access = dbt_access(lake_stack, name, asset, log)
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"What a dbt run of lake {stack.lake.name} may do",
            statements=list(access.statements),
            roles=[role],
        )
        acknowledge(policy, access.acknowledged)
        build = codebuild.CfnProject(
            self,
            "Build",
            name=name,
            description=f"Runs the dbt project {job.project} on lake {stack.lake.name}",
            service_role=role.role_arn,
            source=codebuild.CfnProject.SourceProperty(
                type="S3",
                location=f"{asset.s3_bucket_name}/{asset.s3_object_key}",
                build_spec=Stack.of(self).to_json_string(self._build_spec(project)),
            ),
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                compute_type=_COMPUTE,
                image=_IMAGE,
                environment_variables=[
                    codebuild.CfnProject.EnvironmentVariableProperty(name=key, value=value)
                    for key, value in self._variables(name, bucket).items()
                ],
            ),
            # It would encrypt what a run hands on, and a run hands on nothing.
            encryption_key=f"arn:{Aws.PARTITION}:kms:{stack.aws.region}:{Aws.ACCOUNT_ID}:alias/aws/s3",
            logs_config=codebuild.CfnProject.LogsConfigProperty(
                cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=log.log_group_name
                )
            ),
            # Two runs at a time would replace each other's tables.
            concurrent_build_limit=1,
            timeout_in_minutes=int(job.time_limit.total_seconds()) // 60,
            queued_timeout_in_minutes=60,
        )
        build.node.add_dependency(policy)
        packs = ("HIPAA.Security", "PCI.DSS.321")
        acknowledge(build, {f"{pack}-CodeBuildProjectSourceRepoUrl": _FROM_S3 for pack in packs})
        self._schedule(name, build)
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

    def _build_spec(self, project: Path) -> Mapping[str, Any]:
        commands = ["deps", *self._job.commands] if has_packages(project) else self._job.commands
        install = f"pip install --quiet --disable-pip-version-check {install_options(project)}"
        options = f"--target {self._job.target} --profiles-dir ."
        return {
            "version": "0.2",
            "phases": {
                "install": {
                    "runtime-versions": {"python": _PYTHON},
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
            },
        }

    def _schedule(self, name: str, build: codebuild.CfnProject) -> None:
        """Let EventBridge Scheduler start runs, in a group of its own, whose metrics the alarm reads."""
        group = scheduler.CfnScheduleGroup(self, "ScheduleGroup", name=name)
        place = f"arn:{Aws.PARTITION}:scheduler:{self._stack.aws.region}:{Aws.ACCOUNT_ID}"
        role = iam.Role(
            self,
            "SchedulerRole",
            description=f"Starts dbt runs of lake {self._stack.lake.name}",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": Aws.ACCOUNT_ID,
                        "aws:SourceArn": f"{place}:schedule-group/{name}",
                    }
                },
            ),
        )
        policy = iam.ManagedPolicy(
            self,
            "SchedulerPolicy",
            description=f"Starts dbt runs of lake {self._stack.lake.name}",
            statements=[iam.PolicyStatement(actions=["codebuild:StartBuild"], resources=[build.attr_arn])],
            roles=[role],
        )
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            name=name,
            group_name=group.name,
            description=f"Starts a dbt run of lake {self._stack.lake.name}",
            schedule_expression=self._job.schedule,
            schedule_expression_timezone=self._job.time_zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=build.attr_arn,
                role_arn=role.role_arn,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=3, maximum_event_age_in_seconds=3600
                ),
            ),
        )
        schedule.node.add_dependency(group, policy)


_FROM_S3 = (
    "The source is a zip in S3 that the deployment uploads. The rule is about repositories, whose address "
    "could hold a password."
)
_BY_THE_BUCKET = (
    "A workgroup that enforces a place for results would put the tables' files there too, and results "
    "expire. The bucket encrypts every object, whatever a statement says."
)
