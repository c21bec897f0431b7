"""An error about a silent Kafka has the reason, and librdkafka prints nothing to the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ports import free_port
from tributary.operations import kafka_topics
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import KafkaUnreachable, questions, read_topic_ends

ROOT = Path(__file__).parents[2]


def test_a_question_to_a_kafka_that_is_down_says_why_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kafka_topics, "TIMEOUT_SECONDS", 1.0)
    down = KafkaCluster(f"127.0.0.1:{free_port()}")
    with pytest.raises(KafkaUnreachable, match=r"Broker transport failure; .*Connection refused") as error:
        read_topic_ends(down, ["a"])
    assert "thrd:" not in str(error.value)
    assert "KafkaError{" not in str(error.value)
    with pytest.raises(KafkaUnreachable, match="Connection refused"), kafka_topics._admin(down) as admin:
        admin.list_topics(timeout=1)
    with pytest.raises(ZeroDivisionError), questions(down):
        raise ZeroDivisionError
    assert capfd.readouterr() == ("", "")


def test_each_client_of_kafka_in_the_product_has_a_place_for_its_log() -> None:
    calls = [
        line
        for room in ("tributary", "connectors", "spark_app", "stacks")
        for path in (ROOT / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"\b(Consumer|Producer|AdminClient)\(", line)
    ]
    assert len(calls) == 3
    assert all('"logger"' in line or '"log_level"' in line for line in calls)
