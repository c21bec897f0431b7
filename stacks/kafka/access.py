"""Each client's permissions in Kafka: actions of `kafka-cluster` on topics, groups and transactions.

A resource that ends in `*` is a prefix that only this lake uses. The actions are the ones that the clients
call (Kafka Connect 3.7, Debezium 3.6, Iceberg's sink 1.10, Spark's Kafka source 3.5), and the ones in the MSK
developer guide, "Understand service execution role".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aws_cdk import aws_iam as iam

from connectors.engines.registry import engine_of
from stacks.kafka.cluster import KafkaCluster
from tributary.contract.lake import Lake
from tributary.contract.naming import QUESTIONS_GROUP, topic_escape
from tributary.contract.patterns import WILDCARDS, TablePattern
from tributary.contract.source import Source


@dataclass(frozen=True)
class Access:
    """A client's permissions in Kafka.

    statements    all of the permissions
    acknowledged  reasons why some permissions are for a prefix, by the finding's id, for the policy with the
                  statements
    """

    statements: tuple[iam.PolicyStatement, ...]
    acknowledged: Mapping[str, str]

    def __iter__(self) -> Iterator[iam.PolicyStatement]:
        return iter(self.statements)


def debezium_access(kafka: KafkaCluster, lake: Lake, source: Source) -> Access:
    """Let Debezium send a source's changes, store its offsets and create topics for new tables."""
    names, tables = lake.source_names(source), _named_or_together(lake, [source])
    rights = _Rights(kafka)
    rights.of_a_worker(names.connector)
    rights.on("topic", [names.connect_offsets_topic], "CreateTopic", *_READ, "WriteData")
    if engine_of(source).keeps_history:
        rights.on("topic", [names.history_topic], "DescribeTopicDynamicConfiguration", *_READ, "WriteData")
    own = [names.heartbeat_topic, names.notification_topic]
    rights.on("topic", [*own, *tables], "DescribeTopic", "WriteData", why=_BY_PATTERN)
    if any(topic.endswith("*") for topic in table_topics(lake, source)):
        new = [topic for topic in tables if topic.endswith("*")]
        rights.on("topic", new, "CreateTopic", why=_BY_PATTERN)
    return rights.granted


def iceberg_sink_access(kafka: KafkaCluster, lake: Lake) -> Access:
    """Let the sink read the tables' topics and agree on commits through transactions on its control topic."""
    names, rights = lake.names, _Rights(kafka)
    rights.of_a_worker(names.bronze_connector)
    rights.on("topic", _named_or_together(lake, lake.connected_sources), *_READ, why=_BY_PATTERN)
    rights.on("topic", [names.bronze_control_topic], *_READ, "WriteData")
    groups = [f"connect-{names.bronze_connector}-coord", f"{names.bronze_control_group_prefix}*"]
    rights.on("group", groups, *_GROUP, why=_BY_TASK)
    transactions = [f"{names.bronze_transactional_prefix}*"]
    rights.on(
        "transactional-id", transactions, "AlterTransactionalId", "DescribeTransactionalId", why=_BY_TASK
    )
    return rights.granted


def other_sink_access(kafka: KafkaCluster, lake: Lake) -> Access:
    """Let another sink read the tables' topics."""
    rights = _Rights(kafka)
    rights.of_a_worker(lake.names.bronze_connector)
    rights.on("topic", _named_or_together(lake, lake.connected_sources), *_READ, why=_BY_PATTERN)
    return rights.granted


def spark_access(kafka: KafkaCluster, lake: Lake) -> Access:
    """Let the Spark app read the tables' topics, and read and write those of derived tables.

    It uses its own consumer groups but commits no offsets.
    """
    rights = _Rights(kafka)
    rights.to_connect()
    rights.on("topic", _named_or_together(lake, lake.connected_sources), *_READ, why=_BY_PATTERN)
    rights.on("group", [f"{lake.names.spark_group_prefix}*"], *_GROUP, why=_BY_RUN)
    if lake.topics:
        rights.on("topic", sorted(topic.topic or name for name, topic in lake.topics), *_READ)
    if written := sorted({table.topic for _, table in lake.derived if table.topic is not None}):
        rights.to_write()
        rights.on("topic", written, "CreateTopic", "DescribeTopic", "WriteData")
    return rights.granted


def verification_access(kafka: KafkaCluster, lake: Lake) -> Access:
    """Let a verification read the tables' topics, and what the connectors say of their progress.

    The consumer group of its questions never has members."""
    rights = _Rights(kafka)
    rights.to_connect()
    rights.on("topic", _named_or_together(lake, lake.connected_sources), *_READ, why=_BY_PATTERN)
    rights.on("topic", [f"{lake.names.own_topics}.*"], *_READ, why=_BY_LAKE)
    rights.on("group", [QUESTIONS_GROUP], *_GROUP)
    return rights.granted


def table_topics(lake: Lake, source: Source) -> list[str]:
    """Return the topics of a source's tables: full names and, for patterns, prefixes that end in `*`.

    Exclude patterns do not matter here, because Debezium never sends the excluded tables.
    """
    topics = {_topics_of(lake, source, pattern) for pattern in source.patterns.include}
    if (outbox := source.routed_events) is not None:
        topics.add(f"{lake.source_names(source).table_topics}.{topic_escape(outbox.lake_schema)}.*")
    return sorted(topics)


def known_topics(lake: Lake, source: Source) -> Iterator[str]:
    """Return the topics of the tables that the lake file names in full."""
    return (topic for topic in table_topics(lake, source) if not topic.endswith("*"))


def _topics_of(lake: Lake, source: Source, pattern: TablePattern) -> str:
    text = str(pattern)
    literal = next((text[:at] for at, character in enumerate(text) if character in WILDCARDS), text)
    parts = [lake.source_names(source).table_topics, *map(topic_escape, literal.split("."))]
    return ".".join(parts) + ("" if literal == text else "*")


def _named_or_together(lake: Lake, sources: Iterable[Source]) -> list[str]:
    """Return the topics of the sources' tables, or each source's common prefix if there are too many."""
    topics = {topic for source in sources for topic in table_topics(lake, source)}
    if len(topics) > _MOST_NAMES:
        return sorted(f"{lake.source_names(source).table_topics}.*" for source in sources)
    return sorted(topics)


_MOST_NAMES = 10
"""The most topics in a statement. IAM limits a policy to 6,144 characters, and an ARN takes up to 350."""

_READ = ("DescribeTopic", "ReadData")
_GROUP = ("AlterGroup", "DescribeGroup")
_CONNECT_INTERNAL = "__amazon_msk_connect_*"

_BY_CONNECT = "MSK Connect appends an id of its choice to the names of its workers' own topics and groups."
_BY_PATTERN = (
    "The lake file names these tables by a pattern, so their topics are not known yet, or names more tables "
    "than a policy has room for. Only topics of the source's tables begin like this."
)
_BY_LAKE = "Each source has topics of Tributary's own. Only those of this lake begin like this."
_BY_TASK = "Each task appends an id to these names that it chooses when it starts."
_BY_RUN = "Spark appends an id to the names of its groups that it chooses for each query."


class _Rights:
    """The permissions of one client, as they are collected."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._kafka = kafka
        self._statements: list[iam.PolicyStatement] = []
        self._acknowledged: dict[str, str] = {}

    @property
    def granted(self) -> Access:
        return Access(tuple(self._statements), self._acknowledged)

    def of_a_worker(self, connector: str) -> None:
        """Grant what every worker of MSK Connect needs."""
        self.to_connect()
        self.on("topic", [_CONNECT_INTERNAL], "CreateTopic", *_READ, "WriteData", why=_BY_CONNECT)
        self.on("group", [_CONNECT_INTERNAL, f"connect-{connector}"], *_GROUP, why=_BY_CONNECT)

    def to_connect(self) -> None:
        self._allow(["Connect", "DescribeCluster"], [self._kafka.arn])

    def to_write(self) -> None:
        """Grant what a client needs that sends each message once, even if it has to send it again."""
        self._allow(["WriteDataIdempotently"], [self._kafka.arn])

    def on(self, kind: str, names: Iterable[str], *actions: str, why: str = "") -> None:
        """Grant actions on resources. `why` is the reason for the names that end in `*`."""
        names = list(names)
        self._allow(actions, [self._kafka.arn_of(kind, name) for name in names])
        self._acknowledged |= {
            f"AwsSolutions-IAM5[Resource::{self._kafka.finding_of(kind, name)}]": why
            for name in names
            if name.endswith("*")
        }

    def _allow(self, actions: Iterable[str], resources: list[str]) -> None:
        named = sorted(f"kafka-cluster:{action}" for action in actions)
        self._statements.append(iam.PolicyStatement(actions=named, resources=resources))
