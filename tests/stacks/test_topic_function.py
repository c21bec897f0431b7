"""The function that makes topics on MSK Serverless answers CloudFormation whatever happens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stacks.functions.topics.main import serve

TOPICS = [
    {"name": "__tributary.shop.bronze-control", "partitions": 1, "config": {"cleanup.policy": "delete"}},
    {"name": "shop.web.public.orders", "partitions": 3, "config": {"retention.ms": "60000"}},
]


class Broker:
    """A cluster that answers for each topic with an error code; 0 is none."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.asked: dict[str, Any] = {}
        self.servers = ""
        self.is_closed = False

    def connect(self, servers: str) -> Broker:
        self.servers = servers
        return self

    def create_topics(
        self, topics: Mapping[str, Mapping[str, Any]], timeout_ms: int, *, raise_errors: bool
    ) -> Mapping[str, Any]:
        assert timeout_ms > 0
        assert not raise_errors
        self.asked = dict(topics)
        return {"topics": [{"name": name, "error_code": self.code, "error_message": None} for name in topics]}

    def close(self) -> None:
        self.is_closed = True


def test_each_topic_is_made_as_it_was_declared() -> None:
    broker = Broker()
    assert _served("Create", broker)["Status"] == "SUCCESS"
    assert broker.servers == "boot:9098"
    assert broker.asked == {
        "__tributary.shop.bronze-control": {"num_partitions": 1, "configs": {"cleanup.policy": "delete"}},
        "shop.web.public.orders": {"num_partitions": 3, "configs": {"retention.ms": "60000"}},
    }
    assert broker.is_closed


def test_a_topic_that_is_there_already_is_no_failure() -> None:
    assert _served("Update", Broker(code=36))["Status"] == "SUCCESS"


def test_a_topic_that_is_refused_fails_the_deployment_with_its_name() -> None:
    answer = _served("Create", Broker(code=29))
    assert answer["Status"] == "FAILED"
    assert "shop.web.public.orders: 29" in answer["Reason"]


def test_no_topic_is_removed() -> None:
    broker = Broker()
    assert _served("Delete", broker)["Status"] == "SUCCESS"
    assert not broker.servers


def test_a_cluster_that_does_not_answer_fails_the_deployment() -> None:
    class Silent(Broker):
        def connect(self, servers: str) -> Broker:
            raise TimeoutError(servers)

    answer = _served("Create", Silent())
    assert (answer["Status"], answer["Reason"]) == ("FAILED", "TimeoutError: boot:9098")


@pytest.mark.parametrize(
    ("request_type", "known"), [("Create", None), ("Update", "Topics1"), ("Delete", "Topics1")]
)
def test_what_was_made_keeps_its_name(request_type: str, known: str | None) -> None:
    answer = _served(request_type, Broker(), known)
    assert answer["PhysicalResourceId"] == (known or "Topics")
    assert (answer["StackId"], answer["RequestId"]) == ("stack", "request")


def _served(request_type: str, broker: Broker, known: str | None = None) -> dict[str, Any]:
    answers: list[tuple[str, bytes]] = []
    event = {
        "RequestType": request_type,
        "LogicalResourceId": "Topics",
        "StackId": "stack",
        "RequestId": "request",
        "ResponseURL": "https://answer",
        "ResourceProperties": {"BootstrapServers": "boot:9098", "Topics": json.dumps(TOPICS)},
        **({} if known is None else {"PhysicalResourceId": known}),
    }
    serve(event, broker.connect, lambda url, body: answers.append((url, body)))
    ((url, body),) = answers
    assert url == "https://answer"
    return dict(json.loads(body))
