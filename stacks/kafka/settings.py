"""Kafka's settings for brokers and topics, from the lake file."""

from __future__ import annotations

from datetime import timedelta

from connectors.deployment import MAX_EVENT_MB, TopicPolicy
from tributary.contract.aws import SERVERLESS_MAX_EVENT_MB, Kafka


def topic_policy(kafka: Kafka, max_event_mb: int | None) -> TopicPolicy:
    """Return the policy for tables' topics, no matter whether CloudFormation or Debezium creates them."""
    most = SERVERLESS_MAX_EVENT_MB if kafka.kind == "serverless" else MAX_EVENT_MB
    return TopicPolicy(kafka.retention, max_event_mb or most)


def server_properties(kafka: Kafka, max_event_mb: int | None) -> dict[str, str]:
    """Return the brokers' configuration. Express brokers allow fewer options."""
    policy = topic_policy(kafka, max_event_mb)
    all_brokers = {
        "auto.create.topics.enable": "false",
        "log.retention.ms": policy.config["retention.ms"],
        "message.max.bytes": str(policy.max_event_bytes),
        "replica.fetch.max.bytes": str(policy.max_event_bytes),
        # A sink that was stopped for a long time must resume where it was, not at the beginning.
        "offsets.retention.minutes": str(max(kafka.retention, timedelta(days=30)) // timedelta(minutes=1)),
    }
    if kafka.is_express:
        return all_brokers
    return {
        **all_brokers,
        "default.replication.factor": str(kafka.replication),
        "min.insync.replicas": str(kafka.min_insync),
        "offsets.topic.replication.factor": str(kafka.replication),
        "transaction.state.log.replication.factor": str(kafka.replication),
        "transaction.state.log.min.isr": str(kafka.min_insync),
        # MSK's default allows a replica without all events to become the leader.
        "unclean.leader.election.enable": "false",
    }
