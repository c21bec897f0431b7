"""How brokers and topics are set: what the lake file says of them, in Kafka's words."""

from __future__ import annotations

from datetime import timedelta

from connectors.deployment import MAX_EVENT_MB, TopicPolicy
from tributary.contract.aws import SERVERLESS_MAX_EVENT_MB, Kafka


def topic_policy(kafka: Kafka, max_event_mb: int | None) -> TopicPolicy:
    """How the topics of tables keep their events, whether they are declared or Debezium makes them."""
    most = SERVERLESS_MAX_EVENT_MB if kafka.kind == "serverless" else MAX_EVENT_MB
    return TopicPolicy(kafka.retention, max_event_mb or most)


def server_properties(kafka: Kafka, max_event_mb: int | None) -> dict[str, str]:
    """The brokers' configuration; of Express brokers, what they let be set."""
    policy = topic_policy(kafka, max_event_mb)
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
