"""A schedule that calls a function of the database stack every few minutes."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct, IDependable


def call_regularly(
    scope: Construct,
    function: lambda_.IFunction,
    request: str,
    after: IDependable,
    *,
    description: str,
    permits: str,
    minutes: int = 1,
) -> None:
    """Call the function with this request, once `after` exists. Add one schedule to a construct at most.

    permits  describes the policy of the schedule's role
    minutes  between two calls
    """
    role = iam.Role(scope, "ScheduleRole", assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com"))
    policy = iam.ManagedPolicy(
        scope,
        "SchedulePolicy",
        description=permits,
        statements=[
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
        ],
        roles=[role],
    )
    schedule = scheduler.CfnSchedule(
        scope,
        "Schedule",
        description=description,
        schedule_expression=f"rate({minutes} minute{'' if minutes == 1 else 's'})",
        flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
        target=scheduler.CfnSchedule.TargetProperty(
            arn=function.function_arn,
            role_arn=role.role_arn,
            input=request,
            retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(maximum_retry_attempts=0),
        ),
    )
    schedule.node.add_dependency(policy, after)
