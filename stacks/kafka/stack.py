"""The streaming stack: Kafka, and the topics that are known in advance."""

from __future__ import annotations

from aws_cdk import CfnOutput
from constructs import Construct

from stacks.base import TributaryStack
from stacks.kafka.cluster import KafkaCluster
from stacks.kafka.serverless_topics import ServerlessTopics
from stacks.kafka.topics import DeclaredTopics, declared_topics
from stacks.network import NetworkStack
from tributary.contract.aws_names import Output
from tributary.contract.lake import Lake


class StreamingStack(TributaryStack):
    """The streaming stack. `kafka` is the cluster; its `ready` includes the topics."""

    def __init__(self, scope: Construct, lake: Lake, network: NetworkStack) -> None:
        super().__init__(scope, "streaming", lake, "Kafka and its topics")
        self.kafka = KafkaCluster(self, "Kafka", network)
        topics = list(declared_topics(lake))
        if self.kafka.is_serverless:
            ServerlessTopics(self, "Topics", self.kafka, network, topics)
        else:
            DeclaredTopics(self, "Topics", self.kafka, topics)
        CfnOutput(self, Output.BOOTSTRAP_SERVERS, value=self.kafka.bootstrap_servers)
        CfnOutput(self, Output.KAFKA_CLUSTER, value=self.kafka.arn)
