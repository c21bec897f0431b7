"""A lake's names on AWS: they identify its stacks and separate its data from other lakes' data.

A bucket's name is global to AWS, so it contains the account and the region. All other names are unique within
an account and a region by the lake's name. CloudFormation names roles, policies and security groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

StackKind = Literal[
    "network",
    "lake",
    "database",
    "streaming",
    "connect",
    "processing",
    "analytics",
    "verification",
    "observability",
]
"""The stacks in the order in which they are built. A lake has only those that its settings need."""

BucketKind = Literal["bronze", "silver", "quarantine", "artifacts", "logs"]

METRICS_NAMESPACE = "Tributary"
"""The namespace of the Spark app's CloudWatch metrics. Their dimension `Lake` is the lake's name."""


def dimension_value(text: str) -> str:
    """Return a text as the value of a metric's dimension, which has only ASCII: with Python's escapes."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


class IngestMetric:
    """The metrics that the Spark app sends of a table, and one of the whole lake.

    FRESHNESS        for a commit: the age that 95 % of its changes did not exceed. For a table with a
                     backlog: the time since its last progress
    ROWS, EVENTS     of a commit: the rows that it wrote, and the events that it applied
    DELETES          of a commit: the rows that it deleted
    QUARANTINED      of a commit: the events that it set aside
    COMMIT_TIME      the seconds of a commit
    LAG              the events in the source that the table has not applied
    BLOCKED          1 if the table waits for a person, else 0
    MISSING_CLASSES  1 when a table is blocked because the running Spark or Hudi lacks a class or a member
    NOT_ACCELERATED  of the lake, at each start: 1 if the app runs plain although it may use Java, else 0
    """

    FRESHNESS = "Freshness"
    ROWS = "Rows"
    EVENTS = "Events"
    DELETES = "Deletes"
    QUARANTINED = "Quarantined"
    COMMIT_TIME = "CommitTime"
    LAG = "Lag"
    BLOCKED = "Blocked"
    MISSING_CLASSES = "MissingClasses"
    NOT_ACCELERATED = "NotAccelerated"


class VerificationMetric:
    """The metrics of a verification, of each table and of the whole lake.

    DIFFERING_ROWS  the rows that differ. Of the lake: their sum
    UNPROVEN        1 if the whole table was never found equal, or differs, else 0. Of the lake: their sum
    PROOF_AGE       seconds since the time as of which the whole table equals its source. Of the lake: that of
                    its oldest proof
    """

    DIFFERING_ROWS = "DifferingRows"
    UNPROVEN = "Unproven"
    PROOF_AGE = "ProofAge"


HASH_SALT_KEY = "salt"
"""The key of the secret `AwsNames.hash_salt` that holds the salt."""


@dataclass(frozen=True)
class AwsNames:
    """The AWS names of the lake `lake`."""

    lake: str

    def stack(self, kind: StackKind) -> str:
        return f"tributary-{self.lake}-{kind}"

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(self.stack(kind) for kind in get_args(StackKind))

    def bucket(self, kind: BucketKind, account: str, region: str) -> str:
        """Return a name of at most 63 characters (S3's limit): a lake's name has 24, a region's 14."""
        return f"{self.lake}-{kind}-{account}-{region}"

    @property
    def resource(self) -> str:
        """The name of each resource that the lake has only once: cluster, workgroup, dashboard."""
        return f"tributary-{self.lake}"

    @property
    def hash_salt(self) -> str:
        """The name of the secret with the salt of hashed columns, under `HASH_SALT_KEY`."""
        return f"tributary/{self.lake}/hash-salt"

    def log_group(self, of: str) -> str:
        return f"/tributary/{self.lake}/{of}"


class Output:
    """Keys of the stack outputs that `tributary submit` and `tributary status --aws` read."""

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
    DBT_PROJECT = "DbtProject"
    VERIFY_PROJECT = "VerifyProject"
