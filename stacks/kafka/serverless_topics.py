"""Declare topics on MSK Serverless, for which CloudFormation has no resource."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.functions import topics as topic_function
from stacks.kafka.cluster import KafkaCluster
from stacks.kafka.topics import Topic
from stacks.lake_function import InVpc, add_function, write_main_and_wheels
from stacks.network import NetworkStack

_FUNCTION = Path(topic_function.__path__[0])


class ServerlessTopics(Construct):
    """Topics that a function in the lake's private subnets creates."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        kafka: KafkaCluster,
        network: NetworkStack,
        topics: Sequence[Topic],
    ) -> None:
        super().__init__(scope, construct_id)
        added = add_function(
            self,
            partial(write_main_and_wheels, _FUNCTION),
            InVpc(network, network.functions),
            description="Creates Kafka topics",
            log="topics",
            log_key=network.log_key,
            permits=None,
            statements=_statements(kafka, topics),
            timeout=Duration.minutes(3),
            memory_mb=512,
        )
        made = CustomResource(
            self,
            "Made",
            resource_type="Custom::TributaryTopics",
            service_token=added.function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={
                "BootstrapServers": kafka.bootstrap_servers,
                "Topics": json.dumps([asdict(topic) for topic in topics]),
            },
        )
        # The group's rules must exist first, or the brokers do not let the function in.
        made.node.add_dependency(kafka.security_group)
        kafka.made_ready_by(made)


def _statements(kafka: KafkaCluster, topics: Sequence[Topic]) -> list[iam.PolicyStatement]:
    return [
        iam.PolicyStatement(actions=["kafka-cluster:Connect"], resources=[kafka.arn]),
        iam.PolicyStatement(
            actions=["kafka-cluster:CreateTopic", "kafka-cluster:DescribeTopic"],
            resources=[kafka.own_topic_arn(topic.name) for topic in topics],
        ),
    ]
