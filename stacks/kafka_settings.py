"""How brokers and topics are set: what the lake file says of them, in Kafka's words."""

from __future__ import annotations

from datetime import timedelta

from connectors.deployment import TopicPolicy
from contract.aws import Kafka

SERVERLESS_MAX_EVENT_BYTES = 8 * 1024 * 1024
"""The largest `max.message.bytes` of MSK Serverless (developer guide, "Configuration properties")."""


def topic_policy(kafka: Kafka) -> TopicPolicy:
    """How the topics of tables keep their events, whether they are declared or Debezium makes them."""
    if kafka.kind == "serverless":
        return TopicPolicy(kafka.retention, SERVERLESS_MAX_EVENT_BYTES)
    return TopicPolicy(kafka.retention)


def server_properties(kafka: Kafka) -> dict[str, str]:
    """The brokers' configuration; of Express brokers, what they let be set."""
    policy = topic_policy(kafka)
    all_brokers = {
        "auto.create.topics.enable": "false",
        "log.retention.ms": policy.config["retention.ms"],
        "message.max.bytes": str(policy.max_event_bytes),
        "replica.fetch.max.bytes": str(policy.max_event_bytes),
        # A sink that is away for long goes on where it was, not at the beginning.
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
        # MSK's default lets a replica lead that has not all events.
        "unclean.leader.election.enable": "false",
    }
