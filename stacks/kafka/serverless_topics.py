"""Declare topics on MSK Serverless, for which CloudFormation has no resource."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.checks.findings import acknowledge, acknowledge_function, skip
from stacks.function_code import NO_CALL_LOST, ONE_CALL, write_code
from stacks.functions import topics as topic_function
from stacks.kafka.cluster import KafkaCluster
from stacks.kafka.topics import Topic
from stacks.log_groups import LakeLogGroup
from stacks.network import ANY_INTERFACE, NetworkStack, attachment_to_the_vpc

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
        log_group = LakeLogGroup(self, "Logs", "topics", network.log_key)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self, "Policy", roles=[role], statements=_statements(kafka, topics, log_group)
        )
        acknowledge(policy, {"AwsSolutions-IAM5[Resource::*]": ANY_INTERFACE})
        skip(policy, {"CKV_AWS_111": ANY_INTERFACE})
        with tempfile.TemporaryDirectory() as folder:
            write_code(_FUNCTION, Path(folder))
            function = lambda_.Function(
                self,
                "Function",
                description="Creates Kafka topics",
                runtime=lambda_.Runtime.PYTHON_3_14,
                architecture=lambda_.Architecture.ARM_64,
                handler="main.handle",
                code=lambda_.Code.from_asset(folder),
                role=role.without_policy_updates(),
                vpc=network.vpc,
                vpc_subnets=network.private,
                security_groups=[network.functions],
                log_group=log_group,
                timeout=Duration.minutes(3),
                memory_size=512,
            )
        function.node.add_dependency(policy)
        acknowledge_function(function, no_reservation=ONE_CALL, no_dead_letters=NO_CALL_LOST)
        made = CustomResource(
            self,
            "Made",
            resource_type="Custom::TributaryTopics",
            service_token=function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={
                "BootstrapServers": kafka.bootstrap_servers,
                "Topics": json.dumps([asdict(topic) for topic in topics]),
            },
        )
        # The group's rules must exist first, or the brokers do not let the function in.
        made.node.add_dependency(kafka.security_group)
        kafka.made_ready_by(made)


def _statements(
    kafka: KafkaCluster, topics: Sequence[Topic], log_group: logs.ILogGroup
) -> list[iam.PolicyStatement]:
    return [
        iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn]
        ),
        iam.PolicyStatement(actions=["kafka-cluster:Connect"], resources=[kafka.arn]),
        iam.PolicyStatement(
            actions=["kafka-cluster:CreateTopic", "kafka-cluster:DescribeTopic"],
            resources=[kafka.own_topic_arn(topic.name) for topic in topics],
        ),
        attachment_to_the_vpc(),
    ]
