"""Create topics on MSK Serverless for CloudFormation. Only Kafka's own protocol can create them there.

The function leaves existing topics as they are and never deletes one: topics go with their cluster. Without
an answer, CloudFormation waits for an hour, so the function answers in every case.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Event = Mapping[str, Any]

_CREATED, _WAS_THERE = 0, 36
"""Kafka's error codes."""
_TIMEOUT_MS = 60_000
_MAX_REASON = 1000


class Admin(Protocol):
    """The part of kafka-python's KafkaAdminClient that this module uses."""

    def create_topics(
        self, topics: Mapping[str, Mapping[str, Any]], timeout_ms: int, *, raise_errors: bool
    ) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


def handle(event: Event, context: object) -> None:  # noqa: ARG001
    """Handle a request. Lambda calls this function."""
    serve(event, _connect, _put)


def serve(event: Event, connect: Callable[[str], Admin], answer: Callable[[str, bytes], None]) -> None:
    """Create the topics of a request and answer the request."""
    failure = None
    try:
        if event["RequestType"] != "Delete":
            _make(event["ResourceProperties"], connect)
    except Exception as error:  # noqa: BLE001
        failure = f"{type(error).__name__}: {error}"[:_MAX_REASON]
        print(failure)
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or "",
        "PhysicalResourceId": event.get("PhysicalResourceId", event["LogicalResourceId"]),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    answer(event["ResponseURL"], json.dumps(body).encode())


def _make(properties: Mapping[str, Any], connect: Callable[[str], Admin]) -> None:
    topics = {
        topic["name"]: {"num_partitions": int(topic["partitions"]), "configs": topic["config"]}
        for topic in json.loads(properties["Topics"])
    }
    admin = connect(properties["BootstrapServers"])
    try:
        made = admin.create_topics(topics, _TIMEOUT_MS, raise_errors=False)["topics"]
    finally:
        admin.close()
    refused = [topic for topic in made if topic["error_code"] not in (_CREATED, _WAS_THERE)]
    if refused:
        raise RuntimeError(
            "; ".join(
                f"{topic['name']}: {topic['error_message'] or topic['error_code']}" for topic in refused
            )
        )


def _connect(servers: str) -> Admin:
    from kafka import KafkaAdminClient

    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])
    admin: Admin = KafkaAdminClient(
        bootstrap_servers=servers.split(","), security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM"
    )
    return admin


def _put(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        pass
