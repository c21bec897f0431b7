"""A job that AWS CodeBuild runs on a schedule: the project, its role, and what starts it.

CodeBuild has no servers to keep and is paid by the minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from stacks.kafka.access import Access
from stacks.lake_function import InVpc

PYTHON = "3.11"
_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
_COMPUTE = "BUILD_GENERAL1_SMALL"
"""2 vCPUs and 4 GB."""


@dataclass(frozen=True)
class ScheduledJob:
    """A job.

    name       of the project, the schedule and the schedule's group
    run        the name of one run in descriptions, such as "dbt run"
    does       the description of the project
    phases     what a run does, by the names of CodeBuild's phases
    access     the permissions of a run
    further    more of them, by the ids of their own policies: IAM limits the length of each policy
    place      the network; None: CodeBuild's own, with the internet
    is_enabled whether the schedule starts runs
    """

    name: str
    run: str
    does: str
    phases: Mapping[str, Any]
    schedule: str
    time_zone: str
    time_limit: timedelta
    source: assets.Asset
    access: Access
    log: logs.ILogGroup
    variables: Mapping[str, str]
    further: Mapping[str, Access] = field(default_factory=dict)
    place: InVpc | None = None
    is_enabled: bool = True


def add_scheduled_job(scope: Construct, job: ScheduledJob) -> iam.Role:
    """Add a job to a construct, which can have only one. Return the role of its runs."""
    stack = TributaryStack.of(scope)
    assert isinstance(stack, TributaryStack)
    role = iam.Role(
        scope,
        "Role",
        description=f"What a {job.run} of lake {stack.lake.name} may do",
        assumed_by=iam.ServicePrincipal(
            "codebuild.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        ),
    )
    build = _project(scope, stack, role, job)
    own = Access((*_of_the_run(stack, job), *job.access.statements), job.access.acknowledged)
    for policy_id, access in {"Policy": own, **job.further}.items():
        policy = iam.ManagedPolicy(
            scope,
            policy_id,
            description=f"What a {job.run} of lake {stack.lake.name} may do",
            statements=list(access.statements),
            roles=[role],
        )
        acknowledge(policy, access.acknowledged)
        build.node.add_dependency(policy)
    if job.place is not None:
        build.node.add_dependency(_attach(scope, stack, role, job.place, job.run))
    _add_schedule(scope, stack, job, build)
    return role


def _of_the_run(stack: TributaryStack, job: ScheduledJob) -> Iterator[iam.PolicyStatement]:
    """Yield the permissions to read exactly the source's zip, and to write the run's log."""
    bucket, key = f"arn:{Aws.PARTITION}:s3:::{job.source.s3_bucket_name}", job.source.s3_object_key
    yield iam.PolicyStatement(actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[f"{bucket}/{key}"])
    yield iam.PolicyStatement(actions=["s3:GetBucketLocation"], resources=[bucket])
    if stack.aws.bootstrap.key is not None:
        yield iam.PolicyStatement(
            actions=["kms:Decrypt"],
            resources=[stack.aws.bootstrap.key],
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.aws.region}.amazonaws.com"}},
        )
    yield iam.PolicyStatement(
        actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[job.log.log_group_arn]
    )


def _attach(
    scope: Construct, stack: TributaryStack, role: iam.Role, place: InVpc, run: str
) -> iam.ManagedPolicy:
    """Let CodeBuild give a run a network interface in the subnets, and return the policy that does.

    See the CodeBuild user guide, "Allow CodeBuild access to AWS services required to create a VPC network
    interface". CodeBuild checks the permissions when it creates the project.
    """
    subnets = place.network.private_subnet_ids
    here = f"arn:{Aws.PARTITION}:ec2:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    policy = iam.ManagedPolicy(
        scope,
        "NetworkPolicy",
        description=f"How a {run} of lake {stack.lake.name} gets into the network",
        statements=[
            iam.PolicyStatement(
                actions=[
                    "ec2:CreateNetworkInterface",
                    "ec2:DeleteNetworkInterface",
                    "ec2:DescribeDhcpOptions",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeSecurityGroups",
                    "ec2:DescribeSubnets",
                    "ec2:DescribeVpcs",
                ],
                resources=["*"],
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateNetworkInterfacePermission"],
                resources=[f"{here}:network-interface/*"],
                conditions={
                    "StringEquals": {"ec2:AuthorizedService": "codebuild.amazonaws.com"},
                    "ArnEquals": {"ec2:Subnet": [f"{here}:subnet/{each}" for each in subnets]},
                },
            ),
        ],
        roles=[role],
    )
    interfaces = f"arn:<AWS::Partition>:ec2:{stack.aws.region}:<AWS::AccountId>:network-interface/*"
    acknowledge(
        policy,
        {
            "AwsSolutions-IAM5[Resource::*]": _ANY_INTERFACE,
            f"AwsSolutions-IAM5[Resource::{interfaces}]": _ANY_INTERFACE,
        },
    )
    skip(policy, {"CKV_AWS_111": _ANY_INTERFACE})
    return policy


def _project(
    scope: Construct, stack: TributaryStack, role: iam.Role, job: ScheduledJob
) -> codebuild.CfnProject:
    spec = {"version": "0.2", "phases": job.phases}
    build = codebuild.CfnProject(
        scope,
        "Build",
        name=job.name,
        description=job.does,
        service_role=role.role_arn,
        source=codebuild.CfnProject.SourceProperty(
            type="S3",
            location=f"{job.source.s3_bucket_name}/{job.source.s3_object_key}",
            build_spec=Stack.of(scope).to_json_string(spec),
        ),
        artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
        environment=codebuild.CfnProject.EnvironmentProperty(
            type="LINUX_CONTAINER",
            compute_type=_COMPUTE,
            image=_IMAGE,
            environment_variables=[
                codebuild.CfnProject.EnvironmentVariableProperty(name=key, value=value)
                for key, value in job.variables.items()
            ],
        ),
        vpc_config=(
            None
            if job.place is None
            else codebuild.CfnProject.VpcConfigProperty(
                vpc_id=job.place.network.vpc.vpc_id,
                subnets=job.place.network.private_subnet_ids,
                security_group_ids=[job.place.group.security_group_id],
            )
        ),
        # It would encrypt what a run hands on, and a run hands on nothing.
        encryption_key=f"arn:{Aws.PARTITION}:kms:{stack.aws.region}:{Aws.ACCOUNT_ID}:alias/aws/s3",
        logs_config=codebuild.CfnProject.LogsConfigProperty(
            cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                status="ENABLED", group_name=job.log.log_group_name
            )
        ),
        # Two runs at a time would get in each other's way.
        concurrent_build_limit=1,
        timeout_in_minutes=int(job.time_limit.total_seconds()) // 60,
        queued_timeout_in_minutes=60,
    )
    packs = ("HIPAA.Security", "PCI.DSS.321")
    acknowledge(build, {f"{pack}-CodeBuildProjectSourceRepoUrl": _FROM_S3 for pack in packs})
    return build


def _add_schedule(
    scope: Construct, stack: TributaryStack, job: ScheduledJob, build: codebuild.CfnProject
) -> None:
    """Let EventBridge Scheduler start runs, in a group of its own, whose metrics the alarm reads."""
    group = scheduler.CfnScheduleGroup(scope, "ScheduleGroup", name=job.name)
    place = f"arn:{Aws.PARTITION}:scheduler:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    role = iam.Role(
        scope,
        "SchedulerRole",
        description=f"Starts {job.run}s of lake {stack.lake.name}",
        assumed_by=iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={
                "StringEquals": {
                    "aws:SourceAccount": Aws.ACCOUNT_ID,
                    "aws:SourceArn": f"{place}:schedule-group/{job.name}",
                }
            },
        ),
    )
    policy = iam.ManagedPolicy(
        scope,
        "SchedulerPolicy",
        description=f"Starts {job.run}s of lake {stack.lake.name}",
        statements=[iam.PolicyStatement(actions=["codebuild:StartBuild"], resources=[build.attr_arn])],
        roles=[role],
    )
    schedule = scheduler.CfnSchedule(
        scope,
        "Schedule",
        name=job.name,
        group_name=group.name,
        state=None if job.is_enabled else "DISABLED",
        description=f"Starts a {job.run} of lake {stack.lake.name}",
        schedule_expression=job.schedule,
        schedule_expression_timezone=job.time_zone,
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
_ANY_INTERFACE = (
    "CodeBuild creates the network interface of a run with the run's role. It requires these permissions on "
    "any interface, because the interface does not exist yet."
)
