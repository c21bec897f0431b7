"""Questions to Kafka are refused where their answer would be wrong."""

from __future__ import annotations

import pytest

from tributary.operations import kafka_topics
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import SeveralPartitions, read_notifications


def test_notifications_of_a_topic_with_several_partitions_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only those of one partition would be read, or all in no order."""
    monkeypatch.setattr(kafka_topics, "read_topic_ends", lambda *_: {"told": {0: 4, 1: 0}})
    with pytest.raises(SeveralPartitions) as error:
        read_notifications(KafkaCluster("nowhere:9092"), "told", 0)
    assert "found 2 partitions, expected 1 partition" in str(error.value)
    assert "delete the topic" in str(error.value)
