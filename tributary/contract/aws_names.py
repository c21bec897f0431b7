"""The names that a lake has on AWS, by which its stacks are found and its data is told from other lakes'.

A bucket's name is one for all of AWS, hence account and region in it; all else is told apart by the lake's
name within an account and a region. Roles, policies and security groups get theirs from CloudFormation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

StackKind = Literal["network", "lake", "database", "streaming", "connect", "processing", "observability"]
"""In the order in which they are built."""

BucketKind = Literal["bronze", "silver", "quarantine", "artifacts", "logs"]

METRICS_NAMESPACE = "Tributary"
"""Of the metrics in CloudWatch that the Spark app sends; their dimension `Lake` is the lake's name."""


@dataclass(frozen=True)
class AwsNames:
    """The names of the lake called `lake`."""

    lake: str

    def stack(self, kind: StackKind) -> str:
        return f"tributary-{self.lake}-{kind}"

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(self.stack(kind) for kind in get_args(StackKind))

    def bucket(self, kind: BucketKind, account: str, region: str) -> str:
        """At most 63 characters (S3): a lake's name has 24, a region's 14."""
        return f"{self.lake}-{kind}-{account}-{region}"

    @property
    def resource(self) -> str:
        """What a resource is called of which the lake has one of its kind: cluster, workgroup, dashboard."""
        return f"tributary-{self.lake}"

    def log_group(self, of: str) -> str:
        return f"/tributary/{self.lake}/{of}"


class Output:
    """Keys of the stacks' outputs: what `tributary submit` and `tributary status --aws` read."""

    BOOTSTRAP_SERVERS = "BootstrapServers"
    KAFKA_CLUSTER = "KafkaClusterArn"
    EMR_CLUSTER = "EmrClusterId"
    EMR_SERVERLESS = "EmrServerlessApplicationId"
    RUNTIME_ROLE = "RuntimeRoleArn"
    SPARK_APP = "SparkAppUri"
    SPARK_ENTRY_POINT = "SparkEntryPointUri"
    SPARK_JARS = "SparkJarsUri"
    LAKE_FILE = "LakeFileUri"
    BRONZE = "BronzeUri"
    SILVER = "SilverUri"
    QUARANTINE = "QuarantineUri"
    LOGS = "LogsUri"
    GLUE_DATABASE = "GlueDatabase"
    ATHENA_WORKGROUP = "AthenaWorkgroup"
    CONNECTORS = "Connectors"
