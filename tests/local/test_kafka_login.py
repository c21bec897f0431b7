"""Python's Kafka clients log in to a real broker with tokens, as they do to Amazon MSK."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.kafka_broker import kafka_broker
from tests.ports import free_port
from tributary.local import kafka
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import SeveralPartitions, Topic, read_notifications, read_topics
from tributary.operations.stored_offsets import OffsetsUnreadable, stored_offsets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, NOTIFICATIONS = "offsets", "notifications"
SHOP, OTHER = ["shop", {"server": "a"}], ["other", {"server": "b"}]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker with two topics, on whose listener clients log in with unsigned tokens."""
    port = free_port()
    folder = tmp_path_factory.mktemp("broker")
    with kafka_broker(folder, lambda properties: _with_logins(properties, port)) as broker:
        kafka.create_topic(broker.bootstrap, TOPIC, partitions=2)
        kafka.create_topic(broker.bootstrap, NOTIFICATIONS, partitions=1)
        yield _logging_in(f"127.0.0.1:{port}", "tests")


def _with_logins(properties: Mapping[str, str], port: int) -> dict[str, str]:
    there = f",SASL_PLAINTEXT://127.0.0.1:{port}"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return {
        **properties,
        "listeners": properties["listeners"] + there,
        "advertised.listeners": properties["advertised.listeners"] + there,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            f'{module} required unsecuredLoginStringClaim_sub="broker";'
        ),
    }


def _logging_in(bootstrap: str, user: str) -> KafkaCluster:
    def part(claims: Mapping[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")

    def token(_: str) -> tuple[str, float]:
        now = time.time()
        claims = {"sub": user, "iat": now, "exp": now + 900}
        return f"{part({'alg': 'none'})}.{part(claims)}.", now + 900

    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "OAUTHBEARER", "oauth_cb": token}
    return KafkaCluster(bootstrap, login)


def _producer(broker: KafkaCluster) -> Producer:
    # It would report the broker's end.
    return Producer({**broker.client_config, "log_level": 0})


def _store(broker: KafkaCluster, partition: int, key: Any, offset: Any) -> None:
    producer = _producer(broker)
    value = None if offset is None else json.dumps(offset)
    producer.produce(TOPIC, key=json.dumps(key), value=value, partition=partition)
    assert producer.flush(30) == 0


def test_all_kinds_of_clients_log_in(broker: KafkaCluster) -> None:
    topic = read_topics(broker, [TOPIC, "missing"])
    assert set(topic) == {TOPIC}
    assert isinstance(topic[TOPIC], Topic)
    assert set(topic[TOPIC].ends) == {0, 1}


def test_the_newest_offset_of_a_connector_is_found_in_any_partition(broker: KafkaCluster) -> None:
    with stored_offsets(broker, TOPIC) as offsets:
        assert offsets.of("shop") is None
        _store(broker, 0, SHOP, {"pos": 1})
        _store(broker, 1, OTHER, {"pos": 7})
        assert offsets.of("shop") == {"pos": 1}
        _store(broker, 0, SHOP, {"pos": 2})
        # A notification of Debezium's has no offset and no partition.
        _store(broker, 1, ["shop", None], None)
        assert offsets.of("shop") == {"pos": 2}
        assert offsets.of("other") == {"pos": 7}
        _store(broker, 0, SHOP, None)
        assert offsets.of("shop") is None
        # The source's database has changed.
        _store(broker, 1, ["other", {"server": "b", "database": "new"}], {"pos": 1})
        assert offsets.of("other") == {"pos": 1}
    with stored_offsets(broker, TOPIC) as again:
        assert (again.of("shop"), again.of("other")) == (None, {"pos": 1})


def test_notifications_are_read_in_order_and_those_of_several_partitions_are_refused(
    broker: KafkaCluster,
) -> None:
    """In a topic of several partitions, they have no order."""
    assert read_notifications(broker, "missing", 0) == []
    assert read_notifications(broker, NOTIFICATIONS, 0) == []
    producer = _producer(broker)
    for text in ("one", "two", "three"):
        producer.produce(NOTIFICATIONS, value=text)
    assert producer.flush(30) == 0
    assert read_notifications(broker, NOTIFICATIONS, 1) == [(1, b"two"), (2, b"three")]
    assert read_notifications(broker, NOTIFICATIONS, 3) == []
    with pytest.raises(SeveralPartitions) as error:
        read_notifications(broker, TOPIC, 0)
    assert "found 2 partitions, expected 1 partition" in str(error.value)


def test_a_worker_that_has_stored_nothing_is_told(broker: KafkaCluster) -> None:
    with pytest.raises(OffsetsUnreadable, match="topic missing"), stored_offsets(broker, "missing"):
        pass


def test_a_record_that_is_no_offset_is_refused(broker: KafkaCluster) -> None:
    producer = _producer(broker)
    producer.produce(TOPIC, key=b"key", value=b"{}", partition=1)
    assert producer.flush(30) == 0
    with stored_offsets(broker, TOPIC) as offsets, pytest.raises(OffsetsUnreadable, match="b'key'"):
        offsets.of("shop")
