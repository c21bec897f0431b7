"""Start a follow job again after it has died: a rule on failed jobs, and a function that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aws_cdk import Aws, Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.functions import restart as function
from stacks.lake_function import OutsideVpc, Reasons, add_function, write_main
from stacks.watched import RUNBOOK
from tributary.contract.aws_names import METRICS_NAMESPACE

SECTION = "follow-died"
"""The section of the runbook on jobs that die."""

_LONGEST_MINUTES = 10


class FollowRestart(Construct):
    """The rule and the function for jobs on the cluster or application `place`, which run as `role`."""

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        place: str,
        role: iam.IRole,
        log_key: kms.IKey | None,
    ) -> None:
        super().__init__(stack, construct_id)
        is_cluster = stack.aws.processing.on == "emr"
        access = _on_cluster(stack, place, role) if is_cluster else _on_application(stack, place, role)
        added = add_function(
            self,
            partial(write_main, Path(function.__path__[0])),
            OutsideVpc(),
            description=f"Starts a follow job of lake {stack.lake.name} again",
            log="restart",
            log_key=log_key,
            permits=f"Starts a follow job of lake {stack.lake.name} again",
            statements=access,
            timeout=Duration.minutes(_LONGEST_MINUTES),
            reasons=Reasons(_NO_RESERVATION, _NO_DEAD_LETTERS),
        )
        if not is_cluster:
            runs = f"arn:<AWS::Partition>:emr-serverless:{stack.aws.region}:<AWS::AccountId>:/applications/"
            (logical_id, attribute) = stack.resolve(place)["Fn::GetAtt"]
            application = f"<{logical_id}.{attribute}>"
            acknowledge(
                added.policy, {f"AwsSolutions-IAM5[Resource::{runs}{application}/jobruns/*]": _ANY_RUN}
            )
        self._add_rule(stack, added.function, place, role, is_cluster=is_cluster)

    def _add_rule(
        self,
        stack: TributaryStack,
        restarts: lambda_.IFunction,
        place: str,
        role: iam.IRole,
        *,
        is_cluster: bool,
    ) -> None:
        prefix = stack.names.resource
        of_cluster = {"clusterId": [place], "name": [f"{prefix}-follow"]}
        detail: Mapping[str, Sequence[Any]] = {
            **(of_cluster if is_cluster else {"applicationId": [place]}),
            "state": ["FAILED"],
        }
        request = {
            "lake": stack.lake.name,
            "namespace": METRICS_NAMESPACE,
            "prefix": prefix,
            "role": role.role_arn,
            "restarts": str(stack.aws.processing.restarts),
            "place": place,
            "run": events.EventField.from_path(
                f"$.detail.{'stepId' if is_cluster else 'jobRunId'}",
            ),
        }
        what = "EMR Step Status Change" if is_cluster else "EMR Serverless Job Run State Change"
        events.Rule(
            self,
            "Died",
            description=(f"Starts the follow job of lake {stack.lake.name} again. See {RUNBOOK}#{SECTION}"),
            event_pattern=events.EventPattern(
                source=["aws.emr" if is_cluster else "aws.emr-serverless"], detail_type=[what], detail=detail
            ),
            targets=[targets.LambdaFunction(restarts, event=events.RuleTargetInput.from_object(request))],
        )


def _on_cluster(stack: TributaryStack, cluster: str, role: iam.IRole) -> list[iam.PolicyStatement]:
    arn = f"arn:{Aws.PARTITION}:elasticmapreduce:{stack.aws.region}:{Aws.ACCOUNT_ID}:cluster/{cluster}"
    return [
        iam.PolicyStatement(
            actions=[
                "elasticmapreduce:DescribeCluster",
                "elasticmapreduce:DescribeStep",
                "elasticmapreduce:ListSteps",
            ],
            resources=[arn],
        ),
        iam.PolicyStatement(
            actions=["elasticmapreduce:AddJobFlowSteps"],
            resources=[arn],
            conditions={"StringEquals": {"elasticmapreduce:ExecutionRoleArn": role.role_arn}},
        ),
        _passing(role, "elasticmapreduce"),
    ]


def _on_application(stack: TributaryStack, application: str, role: iam.IRole) -> list[iam.PolicyStatement]:
    service = f"arn:{Aws.PARTITION}:emr-serverless:{stack.aws.region}:{Aws.ACCOUNT_ID}"
    arn = f"{service}:/applications/{application}"
    return [
        iam.PolicyStatement(
            actions=[
                "emr-serverless:GetApplication",
                "emr-serverless:ListJobRuns",
                "emr-serverless:StartJobRun",
            ],
            resources=[arn],
        ),
        iam.PolicyStatement(actions=["emr-serverless:GetJobRun"], resources=[f"{arn}/jobruns/*"]),
        _passing(role, "emr-serverless"),
    ]


def _passing(role: iam.IRole, service: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=["iam:PassRole"],
        resources=[role.role_arn],
        conditions={"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}},
    )


_ANY_RUN = "EMR Serverless chooses a run's id when it starts. The application runs only this lake's jobs."
_NO_RESERVATION = (
    "It runs for minutes, a few times within an hour at most. A reservation would reduce the concurrency of "
    "an account that may have little."
)
_NO_DEAD_LETTERS = (
    "Lambda calls it three times. If it fails each time, the alarm on freshness says that no job runs."
)
