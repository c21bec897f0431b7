"""The monthly budget of a lake, which tells the alarms' topic before the money is spent."""

from __future__ import annotations

from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.base import LAKE_TAG, TributaryStack

_PERCENT_SPENT = 80
_PERCENT_FORECAST = 100


class LakeBudget(Construct):
    """A budget of `dollars` a month for everything with the lake's tag.

    It tells the topic at 80 % of the sum, and as soon as AWS expects the month to cost more.
    AWS counts by a tag only once somebody has activated it as a cost allocation tag.
    """

    def __init__(self, stack: TributaryStack, construct_id: str, topic: sns.ITopic, dollars: int) -> None:
        super().__init__(stack, construct_id)
        of = budgets.CfnBudget
        subscriber = of.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)
        of(
            self,
            "Monthly",
            budget=of.BudgetDataProperty(
                budget_name=f"{stack.names.resource}-monthly",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=of.SpendProperty(amount=dollars, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{LAKE_TAG}${stack.lake.name}"]},
            ),
            notifications_with_subscribers=[
                of.NotificationWithSubscribersProperty(
                    notification=of.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=threshold,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[subscriber],
                )
                for kind, threshold in (("ACTUAL", _PERCENT_SPENT), ("FORECASTED", _PERCENT_FORECAST))
            ],
        )
