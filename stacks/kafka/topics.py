"""The topics that are known before anything runs, and how long each keeps its events."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from aws_cdk import aws_msk as msk
from constructs import Construct

from connectors.engines.registry import engine_of
from stacks.base import TributaryStack, deployment_of
from stacks.kafka.access import known_topics
from stacks.kafka.cluster import KafkaCluster
from stacks.kafka.settings import topic_policy
from tributary.contract.lake import Lake

_HEARTBEATS_KEPT = timedelta(days=1)
_NOTIFICATIONS_KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Topic:
    """A topic. `config` holds its options with Kafka's names."""

    name: str
    partitions: int
    config: Mapping[str, str]


def declared_topics(lake: Lake) -> Iterator[Topic]:
    """Yield the topics to create: for each source, and the sink's control topic.

    A source has its offsets, heartbeat, notifications and named tables.

    Debezium itself creates the topic of a table that matches a pattern when it first sees the table.
    """
    aws = deployment_of(lake)
    tables = topic_policy(aws.kafka, lake.max_event_mb).config
    for source in lake.connected_sources:
        names = lake.source_names(source)
        yield Topic(names.connect_offsets_topic, 1, {"cleanup.policy": "compact"})
        yield Topic(names.heartbeat_topic, 1, _kept(_HEARTBEATS_KEPT))
        yield Topic(names.notification_topic, 1, _kept(_NOTIFICATIONS_KEPT))
        if engine_of(source).keeps_history:
            yield Topic(names.history_topic, 1, {"cleanup.policy": "delete", "retention.ms": "-1"})
        for name in known_topics(lake, source):
            yield Topic(name, source.partitions, tables)
    if aws.connect.sink is None:
        yield Topic(lake.names.bronze_control_topic, 1, _kept(aws.kafka.retention))


class DeclaredTopics(Construct):
    """Topics on a provisioned cluster."""

    def __init__(
        self, scope: Construct, construct_id: str, kafka: KafkaCluster, topics: Sequence[Topic]
    ) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        for topic in topics:
            declared = msk.CfnTopic(
                self,
                topic.name,
                cluster_arn=kafka.arn,
                topic_name=topic.name,
                partition_count=topic.partitions,
                replication_factor=stack.aws.kafka.replication,
                configs=_base64_json(topic.config),
            )
            declared.apply_removal_policy(stack.of_data)
            kafka.made_ready_by(declared)


def _kept(retention: timedelta) -> dict[str, str]:
    return {"cleanup.policy": "delete", "retention.ms": str(retention // timedelta(milliseconds=1))}


def _base64_json(config: Mapping[str, str]) -> str:
    return base64.b64encode(json.dumps(config, sort_keys=True).encode()).decode()
