"""The observability stack: alarms, whom they notify, and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from stacks.base import TributaryStack
from stacks.observability.alarms import LakeAlarms
from stacks.observability.budget import LakeBudget
from stacks.observability.dashboard import LakeDashboard
from stacks.processing.stack import ProcessingStack
from stacks.watched import RUNBOOK
from tributary.contract.lake import Lake

_SENDERS = ("cloudwatch.amazonaws.com", "events.amazonaws.com")
_BUDGETS = "budgets.amazonaws.com"
_STEP_FAILED = "step-failed"


class ObservabilityStack(TributaryStack):
    """The observability stack. `topic` gets a message for every alarm and every failed run."""

    def __init__(self, scope: Construct, lake: Lake, processing: ProcessingStack) -> None:
        super().__init__(scope, "observability", lake, "alarms and dashboard")
        self.topic = self._topic()
        alarms = LakeAlarms(self, "Alarms", self.topic)
        LakeDashboard(self, "Dashboard", alarms.alarms)
        self._report_failed_runs(processing)
        if self.aws.alarms.budget is not None:
            LakeBudget(self, "Budget", self.topic, self.aws.alarms.budget)

    def _topic(self) -> sns.Topic:
        # Neither CloudWatch nor EventBridge may use AWS's own key for SNS.
        key = kms.Key(
            self,
            "TopicKey",
            description=f"Alarms of lake {self.lake.name}",
            enable_key_rotation=True,
            removal_policy=self.of_data,
        )
        of_account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(sender) for sender in self._senders()],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],  # In a key's policy: this key.
                conditions=of_account,
            )
        )
        topic = sns.Topic(
            self, "Topic", topic_name=f"{self.names.resource}-alarms", master_key=key, enforce_ssl=True
        )
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions=of_account,
            )
        )
        if self.aws.alarms.budget is not None:
            topic.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal(_BUDGETS)],
                    actions=["sns:Publish"],
                    resources=[topic.topic_arn],
                    conditions=of_account,
                )
            )
        if self.aws.alarms.email is not None:
            topic.add_subscription(subscriptions.EmailSubscription(self.aws.alarms.email))
        return topic

    def _senders(self) -> tuple[str, ...]:
        return (*_SENDERS, _BUDGETS) if self.aws.alarms.budget is not None else _SENDERS

    def _report_failed_runs(self, processing: ProcessingStack) -> None:
        ended = ["CANCELLED", "FAILED"]
        if processing.application_id is not None:
            runs = {"applicationId": [processing.application_id], "state": ended}
            self._report("RunFailed", "aws.emr-serverless", "EMR Serverless Job Run State Change", runs)
            return
        # By name: a reference to the cluster's id would keep CloudFormation from replacing the cluster.
        steps = {"name": events.Match.prefix(f"{self.names.resource}-"), "state": ended}
        self._report("StepFailed", "aws.emr", "EMR Step Status Change", steps)
        clusters = {"name": [self.names.resource], "state": ["TERMINATED_WITH_ERRORS"]}
        self._report("ClusterFailed", "aws.emr", "EMR Cluster State Change", clusters)

    def _report(self, construct_id: str, source: str, of: str, detail: Mapping[str, Sequence[str]]) -> None:
        what_to_do = f"What to do: {RUNBOOK}#{_STEP_FAILED}"
        events.Rule(
            self,
            construct_id,
            description=f"A run of the Spark app of lake {self.lake.name} has failed. {what_to_do}",
            event_pattern=events.EventPattern(source=[source], detail_type=[of], detail=detail),
            targets=[
                targets.SnsTopic(
                    self.topic,
                    message=events.RuleTargetInput.from_object(
                        {
                            "lake": self.lake.name,
                            "what": of,
                            "what_to_do": what_to_do,
                            "detail": events.EventField.from_path("$.detail"),
                        }
                    ),
                )
            ],
        )
