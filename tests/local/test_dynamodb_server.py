"""The local DynamoDB sends each change in DynamoDB's own form, and keeps its tables over a restart."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from spark_app.wire.items.record import read_record, table_of_record
from tests.aws_double import running_moto
from tributary.local.items.dynamodb_server import (
    STREAM,
    Destination,
    Relay,
    WithStreams,
    restore,
    save,
)

REGION = "us-east-1"
TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "B"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEM = {
    "id": {"B": b"\0\xff"},
    "n": {"N": "1.50"},
    "nested": {"M": {"list": {"L": [{"B": b"\1"}, {"NULL": True}]}, "set": {"BS": [b"a", b"b"]}}},
}


@dataclass
class FakeKinesis:
    """Refuses every third record."""

    records: list[bytes] = field(default_factory=list)
    asked: int = 0

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert StreamName == "changes"
        results = []
        for record in Records:
            self.asked += 1
            if self.asked % 3:
                self.records.append(record["Data"])
            results.append({} if self.asked % 3 else {"ErrorCode": "ProvisionedThroughputExceededException"})
        return {"Records": results}


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr("tributary.local.items.dynamodb_server.time.sleep", lambda _: None)
    with running_moto() as url:
        session: Any = boto3.session.Session("local", "local", region_name=REGION)
        dynamodb, streams = (
            session.client(service, endpoint_url=url) for service in ("dynamodb", "dynamodbstreams")
        )
        for table in dynamodb.list_tables()["TableNames"]:
            dynamodb.delete_table(TableName=table)
        destinations = [Destination("changes", "orders")]
        yield Relay(dynamodb, streams, FakeKinesis(), destinations, chance=random.Random(3))


def test_each_change_is_sent_once_in_the_form_that_the_app_reads(relay: Relay) -> None:
    relay.dynamodb.create_table(**TABLE, StreamSpecification=STREAM)
    relay.dynamodb.create_table(**{**TABLE, "TableName": "other"}, StreamSpecification=STREAM)
    relay.dynamodb.put_item(TableName="orders", Item=ITEM)
    relay.dynamodb.put_item(TableName="other", Item=ITEM)
    relay.step()
    relay.dynamodb.put_item(TableName="orders", Item={**ITEM, "n": {"N": "2"}})
    relay.dynamodb.delete_item(TableName="orders", Key={"id": ITEM["id"]})
    relay.step()
    relay.step()

    changes = [read_record(data) for data in relay.kinesis.records]
    assert [change.operation for change in sorted(changes, key=lambda c: c.time_us)] == ["c", "u", "d"]
    assert len({change.time_us for change in changes}) == 3
    assert {table_of_record(data) for data in relay.kinesis.records} == {"orders"}
    assert {json.dumps(change.keys) for change in changes} == {'{"id": {"B": "AP8="}}'}


def test_with_disorder_every_change_comes_at_least_once(relay: Relay) -> None:
    relay.disorder = True
    relay.dynamodb.create_table(**TABLE, StreamSpecification=STREAM)
    for number in range(60):
        relay.dynamodb.put_item(TableName="orders", Item={"id": {"B": bytes([number])}})
        if number % 10 == 0:
            relay.step()
    for _ in range(20):
        relay.step()

    times = [read_record(data).time_us for data in relay.kinesis.records]
    assert len(set(times)) == 60
    assert len(times) > 60
    assert times != sorted(times)


def test_tables_and_items_survive_a_restart(relay: Relay, tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    relay.dynamodb.create_table(**TABLE)
    relay.dynamodb.put_item(TableName="orders", Item=ITEM)
    save(relay.dynamodb, file)
    assert file.stat().st_mode & 0o077 == 0
    relay.dynamodb.delete_table(TableName="orders")

    restore(relay.dynamodb, file)

    assert relay.dynamodb.scan(TableName="orders")["Items"] == [ITEM]
    relay.skip()
    assert relay.step() == 0


def test_a_new_table_gets_a_stream_and_changes_wake_the_relay() -> None:
    changed, bodies = threading.Event(), []

    def application(environ: dict[str, Any], _: Any) -> list[bytes]:
        bodies.append(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        return [b"{}"]

    def ask(operation: str, body: bytes) -> None:
        headers = {"HTTP_X_AMZ_TARGET": f"DynamoDB_20120810.{operation}", "CONTENT_LENGTH": str(len(body))}
        WithStreams(application, changed)({**headers, "wsgi.input": io.BytesIO(body)}, None)

    ask("Query", b"{}")
    assert not changed.is_set()
    ask("PutItem", b"{}")
    assert changed.is_set()
    ask("CreateTable", b'{"TableName": "a"}')
    assert json.loads(bodies[-1]) == {"TableName": "a", "StreamSpecification": STREAM}
