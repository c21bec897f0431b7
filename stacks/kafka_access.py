"""What each client may do in Kafka: which actions of `kafka-cluster` on which topics, groups and transactions.

A right that ends in `*` is on a prefix that is the lake's alone. The actions are those that the clients'
versions call (Kafka Connect 3.7, Debezium 3.6, Iceberg's sink 1.10, Spark's Kafka source 3.5), and MSK's
developer guide, "Understand service execution role".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import aws_iam as iam

from contract.lake import Lake, Source
from contract.naming import topic_escape
from contract.patterns import WILDCARDS, TablePattern
from stacks.kafka_cluster import KafkaCluster

CONNECT_INTERNAL = "__amazon_msk_connect_*"
"""Topics and groups in which MSK Connect keeps its workers' state; it ends their names with an id of its own."""


def debezium_access(kafka: KafkaCluster, lake: Lake, source: Source) -> list[iam.PolicyStatement]:
    """Sends a source's changes and keeps how far it has read; makes the topics that only it can know of."""
    names = lake.source_names(source)
    made = [topic for topic in table_topics(lake, source) if topic.endswith("*")]
    return [
        *_worker_access(kafka, names.connector),
        _on_topics(kafka, [names.connect_offsets_topic], "CreateTopic", *_READ, "WriteData"),
        _on_topics(kafka, [names.heartbeat_topic, *table_topics(lake, source)], *_WRITE),
        *([_on_topics(kafka, made, "CreateTopic")] if made else []),
        # Only MSK Serverless has no other way to make these.
        *(
            [_on_topics(kafka, [names.heartbeat_topic, *known_topics(lake, source)], "CreateTopic")]
            if kafka.is_serverless
            else []
        ),
    ]


def iceberg_sink_access(kafka: KafkaCluster, lake: Lake) -> list[iam.PolicyStatement]:
    """Reads the tables' topics; its tasks agree on commits over the control topic, in transactions."""
    names = lake.names
    transactions = kafka.transactional_id_arn(f"{names.bronze_transactional_prefix}*")
    return [
        *_worker_access(kafka, names.bronze_connector),
        _on_topics(kafka, _all_table_topics(lake), *_READ),
        _on_topics(kafka, [names.bronze_control_topic], *_READ, "WriteData"),
        _on_groups(kafka, [f"{names.bronze_control_group_prefix}*"]),
        _statement(["AlterTransactionalId", "DescribeTransactionalId"], [transactions]),
    ]


def other_sink_access(kafka: KafkaCluster, lake: Lake) -> list[iam.PolicyStatement]:
    """Reads the tables' topics."""
    return [
        *_worker_access(kafka, lake.names.bronze_connector),
        _on_topics(kafka, _all_table_topics(lake), *_READ),
    ]


def spark_access(kafka: KafkaCluster, lake: Lake) -> list[iam.PolicyStatement]:
    """Reads the tables' topics under consumer groups of its own, in which it commits nothing."""
    return [
        _statement(["Connect", "DescribeCluster"], [kafka.arn]),
        _on_topics(kafka, _all_table_topics(lake), *_READ),
        _on_groups(kafka, [f"{lake.names.spark_group_prefix}*"]),
    ]


def table_topics(lake: Lake, source: Source) -> list[str]:
    """The topics of the source's tables: whole names, and prefixes that end in `*` for what patterns match.

    Exclude patterns narrow nothing: Debezium never sends those tables.
    """
    return sorted({_topics_of(lake, source, pattern) for pattern in source.patterns.include})


def known_topics(lake: Lake, source: Source) -> list[str]:
    """The topics of the tables that the lake file names in full."""
    return [topic for topic in table_topics(lake, source) if not topic.endswith("*")]


def _topics_of(lake: Lake, source: Source, pattern: TablePattern) -> str:
    text = str(pattern)
    literal = next((text[:at] for at, character in enumerate(text) if character in WILDCARDS), text)
    schema, dot, table = literal.partition(".")
    parts = [lake.name, *map(topic_escape, (source.name, schema))]
    name = ".".join(parts) + (f".{topic_escape(table)}" if dot else "")
    return name if literal == text else f"{name}*"


def _all_table_topics(lake: Lake) -> list[str]:
    return sorted({topic for source in lake.sources for topic in table_topics(lake, source)})


_READ = ("DescribeTopic", "ReadData")
_WRITE = ("DescribeTopic", "WriteData")


def _worker_access(kafka: KafkaCluster, connector: str) -> list[iam.PolicyStatement]:
    """What every worker of MSK Connect needs, whatever its connector does."""
    return [
        _statement(["Connect", "DescribeCluster"], [kafka.arn]),
        _on_topics(kafka, [CONNECT_INTERNAL], "CreateTopic", *_READ, "WriteData"),
        _on_groups(kafka, [CONNECT_INTERNAL, f"connect-{connector}*"]),
    ]


def _on_topics(kafka: KafkaCluster, topics: Iterable[str], *actions: str) -> iam.PolicyStatement:
    return _statement(actions, [kafka.topic_arn(topic) for topic in topics])


def _on_groups(kafka: KafkaCluster, groups: Iterable[str]) -> iam.PolicyStatement:
    return _statement(["AlterGroup", "DescribeGroup"], [kafka.group_arn(group) for group in groups])


def _statement(actions: Iterable[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=sorted(f"kafka-cluster:{action}" for action in actions), resources=list(resources)
    )
