"""The analytics stack: what models and shows the lake's tables on AWS, if the lake file asks for it."""

from __future__ import annotations

from pathlib import Path

from constructs import Construct

from stacks.analytics.dbt_job import DbtJobOnAws
from stacks.analytics.quicksight import QuickSightDashboards
from stacks.base import TributaryStack, deployment_of
from stacks.lake.stack import LakeStack
from stacks.network import NetworkStack
from tributary.contract.lake import Lake


class AnalyticsStack(TributaryStack):
    """The analytics stack.

    folder  of the lake file, from which its entries count their paths

    Raises TributaryError if a file that an entry names is missing or cannot be used.
    """

    def __init__(
        self, scope: Construct, lake: Lake, network: NetworkStack, lake_stack: LakeStack, folder: Path
    ) -> None:
        super().__init__(scope, "analytics", lake, "models and dashboards of the lake's tables")
        if self.aws.dbt is not None:
            DbtJobOnAws(self, "Dbt", self.aws.dbt, folder, lake_stack, network.log_key)
        if self.aws.quicksight is not None:
            QuickSightDashboards(self, "QuickSight", self.aws.quicksight, folder, lake_stack)

    @staticmethod
    def is_needed(lake: Lake) -> bool:
        aws = deployment_of(lake)
        return aws.dbt is not None or aws.quicksight is not None
